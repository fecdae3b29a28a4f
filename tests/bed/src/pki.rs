//! A certificate authority of its own for each control plane: a kubeconfig of one cluster must not pass at another.

use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

use crate::error::{Error, Result};

const YEAR: Duration = Duration::from_hours(365 * 24);

/// A certificate and its private key, both PEM.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// Signs the serving certificate and the client certificates of one control plane.
#[derive(Debug)]
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(cluster: &str) -> Result<Self> {
        let subject = format!("{cluster} CA");
        let make = || {
            let mut params = params(&subject, None, YEAR)?;
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![
                KeyUsagePurpose::KeyCertSign,
                KeyUsagePurpose::CrlSign,
                KeyUsagePurpose::DigitalSignature,
            ];
            CertifiedIssuer::self_signed(params, KeyPair::generate()?)
        };
        let issuer = make().map_err(|source| Error::Certificate {
            subject: subject.clone(),
            source,
        })?;
        Ok(Self { issuer })
    }

    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A serving certificate for DNS names and addresses.
    pub(crate) fn serving(&self, names: &[&str]) -> Result<Certificate> {
        let subject = names.first().copied().unwrap_or_default();
        self.sign(subject, || {
            let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>())?;
            let dated = self::params(subject, None, YEAR)?;
            params.distinguished_name = dated.distinguished_name;
            params.not_before = dated.not_before;
            params.not_after = dated.not_after;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            Ok(params)
        })
    }

    /// A client certificate: the API server reads the user from CN and the group from O. One group, because a name of
    /// `rcgen` holds each attribute once.
    pub(crate) fn client(&self, user: &str, group: Option<&str>, valid_for: Duration) -> Result<Certificate> {
        self.sign(user, || {
            let mut params = params(user, group, valid_for)?;
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            Ok(params)
        })
    }

    fn sign(
        &self,
        subject: &str,
        params: impl FnOnce() -> Result<CertificateParams, rcgen::Error>,
    ) -> Result<Certificate> {
        let make = || {
            let key = KeyPair::generate()?;
            let certificate = params()?.signed_by(&key, &self.issuer)?;
            Ok(Certificate {
                certificate: certificate.pem(),
                key: key.serialize_pem(),
            })
        };
        make().map_err(|source| Error::Certificate {
            subject: subject.to_owned(),
            source,
        })
    }
}

/// A key pair that signs service account tokens: private and public key, both PEM.
pub(crate) fn token_keys() -> Result<(String, String)> {
    let pair = KeyPair::generate();
    let pair = pair.map_err(|source| Error::Certificate {
        subject: "service account tokens".to_owned(),
        source,
    })?;
    Ok((pair.serialize_pem(), pair.public_key_pem()))
}

fn params(user: &str, group: Option<&str>, valid_for: Duration) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, user);
    if let Some(group) = group {
        name.push(DnType::OrganizationName, group);
    }
    params.distinguished_name = name;
    let now = SystemTime::now();
    // A minute back: certificates count whole seconds and clocks are not perfect.
    params.not_before = (now - Duration::from_mins(1)).into();
    params.not_after = (now + valid_for).into();
    Ok(params)
}
