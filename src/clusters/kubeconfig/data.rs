//! What a kubeconfig holds as base64 of PEM.

use k8s_openapi::ByteString;
use k8s_openapi::jiff::Timestamp;
use kube::config::{AuthInfo, Cluster};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::KubeconfigError;
use crate::clusters::x509;

/// The certificates of `certificate-authority-data`, as DER.
pub fn roots(cluster: &Cluster) -> Result<Vec<Vec<u8>>, KubeconfigError> {
    let field = "cluster.certificate-authority-data";
    let data = cluster
        .certificate_authority_data
        .as_deref()
        .filter(|data| !data.trim().is_empty())
        .ok_or(KubeconfigError::Missing {
            field,
            right: "give the CA that signed the API server's certificate, as base64 of PEM: the system's roots are not used",
        })?;
    let pem = base64(field, data)?;
    let roots = CertificateDer::pem_slice_iter(&pem)
        .map(|found| found.map(|der| der.to_vec()))
        .collect::<Result<Vec<_>, _>>()
        .ok()
        .filter(|roots| !roots.is_empty())
        .ok_or(KubeconfigError::Data {
            field,
            found: "holds no certificate in PEM",
            right: "base64 of PEM with at least one CERTIFICATE block is expected",
        })?;
    let facts: Vec<_> =
        roots
            .iter()
            .map(|der| x509::read(der))
            .collect::<Option<_>>()
            .ok_or(KubeconfigError::Data {
                field,
                found: "holds a certificate that cannot be read",
                right: "X.509 certificates are expected",
            })?;
    // A leaf that another signed can be no trust anchor: the handshake would end in an unexplained "unknown issuer", while clients in Go accept it.
    if facts.iter().all(|fact| !fact.is_ca && !fact.self_issued) {
        return Err(KubeconfigError::Data {
            field,
            found: "is not a CA but the certificate of a server",
            right: "give the certificate of the CA that signed it",
        });
    }
    Ok(roots)
}

/// What of a user is used, and the end of its client certificate.
pub fn credentials(user: &AuthInfo) -> Result<(AuthInfo, Option<Timestamp>), KubeconfigError> {
    let mut auth = AuthInfo {
        token: user.token.clone(),
        impersonate: user.impersonate.clone(),
        impersonate_uid: user.impersonate_uid.clone(),
        impersonate_groups: user.impersonate_groups.clone(),
        ..AuthInfo::default()
    };
    let not_after = match (&user.client_certificate_data, &user.client_key_data) {
        (Some(certificate), Some(key)) => {
            let field = "user.client-certificate-data";
            let pem = base64(field, certificate)?;
            let leaf = CertificateDer::from_pem_slice(&pem)
                .ok()
                .and_then(|der| x509::read(&der))
                .ok_or(KubeconfigError::Data {
                    field,
                    found: "holds no certificate in PEM",
                    right: "base64 of PEM with a CERTIFICATE block is expected",
                })?;
            auth.client_certificate_data = Some(compact(certificate));
            auth.client_key_data = Some(key.clone());
            Some(leaf.not_after)
        }
        (None, None) => None,
        (Some(_), None) => {
            return Err(KubeconfigError::Missing {
                field: "user.client-key-data",
                right: "give the key of client-certificate-data",
            });
        }
        (None, Some(_)) => {
            return Err(KubeconfigError::Missing {
                field: "user.client-certificate-data",
                right: "give the certificate of client-key-data",
            });
        }
    };
    if auth.token.is_none() && not_after.is_none() {
        return Err(KubeconfigError::Missing {
            field: "user.token",
            right: "give a token, or client-certificate-data with client-key-data",
        });
    }
    Ok((auth, not_after))
}

/// Base64 as YAML may fold it.
fn compact(data: &str) -> String {
    data.chars().filter(|c| !c.is_whitespace()).collect()
}

fn base64(field: &'static str, data: &str) -> Result<Vec<u8>, KubeconfigError> {
    // The decoder of the API types, so that no second one is linked.
    serde_json::from_value::<ByteString>(serde_json::Value::String(compact(data)))
        .map(|bytes| bytes.0)
        .map_err(|_| KubeconfigError::Data {
            field,
            found: "is not base64",
            right: "base64 of PEM is expected",
        })
}
