//! Vetting of kubeconfigs: text in, what may be used of it out. Pure: no file is read and no program is run, whatever the text says.
//!
//! A kubeconfig is hostile input: whoever writes the Secret could otherwise run programs in the operator (`exec`), read its files and have them sent to a
//! server of his choice (`tokenFile`, `client-key`), or switch the check of the server off. What is refused is refused by name; what is accepted is
//! copied field by field, so that a field that is new in a later client library is not used before it was looked at.

use std::fmt;

use k8s_openapi::jiff::Timestamp;
use kube::config::{AuthInfo, Cluster, Kubeconfig};

mod data;
mod error;
#[cfg(test)]
mod tests;

pub use error::KubeconfigError;

/// The largest kubeconfig that is read, in bytes.
pub const MAX_BYTES: usize = 1024 * 1024;

/// What may be used of a kubeconfig.
#[derive(Clone)]
pub struct VettedKubeconfig {
    /// `https` URL of the API server.
    pub server: http::Uri,
    /// The only certificates that are trusted, as DER.
    pub roots: Vec<Vec<u8>>,
    /// The name that the server's certificate must carry, if not the host of the URL.
    pub tls_server_name: Option<String>,
    /// The proxy, if one was named here; the environment never adds one.
    pub proxy: Option<http::Uri>,
    /// Token, or client certificate and key; nothing else.
    pub auth: AuthInfo,
    /// End of the validity of the client certificate.
    pub client_not_after: Option<Timestamp>,
}

impl fmt::Debug for VettedKubeconfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VettedKubeconfig")
            .field("server", &self.server)
            .field("proxy", &self.proxy.as_ref().and_then(http::Uri::host))
            .field("client_not_after", &self.client_not_after)
            .finish_non_exhaustive()
    }
}

/// Vets the content of a Secret's key.
pub fn vet(bytes: &[u8]) -> Result<VettedKubeconfig, KubeconfigError> {
    if bytes.len() > MAX_BYTES {
        return Err(KubeconfigError::TooLarge { found: bytes.len() });
    }
    let text = std::str::from_utf8(bytes).map_err(|e| KubeconfigError::Unparsable {
        place: format!(" (byte {} is not UTF-8)", e.valid_up_to()),
    })?;
    if text.trim().is_empty() {
        return Err(KubeconfigError::Empty);
    }
    let file = Kubeconfig::from_yaml(text).map_err(|e| KubeconfigError::Unparsable { place: place(&e) })?;
    let (cluster, user) = select(&file)?;
    refuse_cluster(cluster)?;
    refuse_user(user)?;

    let (auth, client_not_after) = data::credentials(user)?;
    Ok(VettedKubeconfig {
        server: server(cluster)?,
        roots: data::roots(cluster)?,
        tls_server_name: cluster.tls_server_name.clone().filter(|name| !name.is_empty()),
        proxy: proxy(cluster)?,
        auth,
        client_not_after,
    })
}

fn place(error: &kube::config::KubeconfigError) -> String {
    let kube::config::KubeconfigError::Parse(yaml) = error else {
        return String::new();
    };
    yaml.location()
        .map_or_else(String::new, |at| format!(" (line {})", at.line()))
}

/// The cluster and the user of the current context, or of the only one.
fn select(file: &Kubeconfig) -> Result<(&Cluster, &AuthInfo), KubeconfigError> {
    let current = file.current_context.as_deref().filter(|name| !name.is_empty());
    let context = match (current, file.contexts.as_slice()) {
        (Some(name), contexts) => {
            contexts
                .iter()
                .find(|context| context.name == name)
                .ok_or(KubeconfigError::Dangling {
                    field: "current-context",
                    name: name.to_owned(),
                })?
        }
        (None, [only]) => only,
        (None, contexts) => return Err(KubeconfigError::NoCurrentContext { found: contexts.len() }),
    };
    let context = context.context.as_ref().ok_or(KubeconfigError::Missing {
        field: "contexts[].context",
        right: "give it a cluster and a user",
    })?;
    let cluster = file
        .clusters
        .iter()
        .find(|named| named.name == context.cluster)
        .and_then(|named| named.cluster.as_ref())
        .ok_or_else(|| KubeconfigError::Dangling {
            field: "context.cluster",
            name: context.cluster.clone(),
        })?;
    let user = context
        .user
        .as_deref()
        .filter(|name| !name.is_empty())
        .ok_or(KubeconfigError::Missing {
            field: "context.user",
            right: "name the user that the operator is on this cluster",
        })?;
    let user = file
        .auth_infos
        .iter()
        .find(|named| named.name == user)
        .and_then(|named| named.auth_info.as_ref())
        .ok_or_else(|| KubeconfigError::Dangling {
            field: "context.user",
            name: user.to_owned(),
        })?;
    Ok((cluster, user))
}

fn refuse_cluster(cluster: &Cluster) -> Result<(), KubeconfigError> {
    if cluster.certificate_authority.is_some() {
        return Err(KubeconfigError::File {
            field: "cluster.certificate-authority",
            right: "put the CA in certificate-authority-data",
        });
    }
    if cluster.insecure_skip_tls_verify == Some(true) {
        return Err(KubeconfigError::InsecureSkipTlsVerify);
    }
    Ok(())
}

fn refuse_user(user: &AuthInfo) -> Result<(), KubeconfigError> {
    if user.exec.is_some() {
        return Err(KubeconfigError::Plugin { field: "exec" });
    }
    if user.auth_provider.is_some() {
        return Err(KubeconfigError::Plugin { field: "auth-provider" });
    }
    for (set, field, right) in [
        (user.token_file.is_some(), "user.tokenFile", "put the token in token"),
        (
            user.client_certificate.is_some(),
            "user.client-certificate",
            "put the certificate in client-certificate-data",
        ),
        (
            user.client_key.is_some(),
            "user.client-key",
            "put the key in client-key-data",
        ),
    ] {
        if set {
            return Err(KubeconfigError::File { field, right });
        }
    }
    if user.username.is_some() || user.password.is_some() {
        return Err(KubeconfigError::BasicAuth);
    }
    Ok(())
}

fn server(cluster: &Cluster) -> Result<http::Uri, KubeconfigError> {
    let field = "cluster.server";
    let text = cluster
        .server
        .as_deref()
        .filter(|text| !text.is_empty())
        .ok_or(KubeconfigError::Missing {
            field,
            right: "give the https URL of the API server",
        })?;
    let uri = url(field, text, "an https URL is expected")?;
    let wrong = |right| KubeconfigError::Url {
        field,
        found: without_user_info(text),
        right,
    };
    if uri.scheme_str() != Some("https") {
        return Err(wrong("only https is spoken with an API server"));
    }
    if has_user_info(&uri) {
        return Err(wrong("it must not hold a user or a password: use token"));
    }
    if uri.query().is_some() {
        return Err(wrong("it must not hold a query"));
    }
    Ok(uri)
}

fn proxy(cluster: &Cluster) -> Result<Option<http::Uri>, KubeconfigError> {
    let field = "cluster.proxy-url";
    let Some(text) = cluster.proxy_url.as_deref().filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let uri = url(field, text, "an http or https URL is expected")?;
    match uri.scheme_str() {
        Some("http" | "https") => Ok(Some(uri)),
        _ => Err(KubeconfigError::Url {
            field,
            found: without_user_info(text),
            right: "only http and https proxies are used",
        }),
    }
}

fn url(field: &'static str, text: &str, right: &'static str) -> Result<http::Uri, KubeconfigError> {
    text.parse::<http::Uri>()
        .ok()
        .filter(|uri| uri.scheme().is_some() && uri.host().is_some_and(|host| !host.is_empty()))
        .ok_or_else(|| KubeconfigError::Url {
            field,
            found: without_user_info(text),
            right,
        })
}

fn has_user_info(uri: &http::Uri) -> bool {
    uri.authority()
        .is_some_and(|authority| authority.as_str().contains('@'))
}

/// The URL as it may stand in a condition: everything between the scheme and the last `@` is left out, and it is cut.
fn without_user_info(text: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
    let rest = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    let shown: String = if scheme.is_empty() {
        rest.to_owned()
    } else {
        format!("{scheme}://{rest}")
    };
    shown.chars().take(200).collect()
}
