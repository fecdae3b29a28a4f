//! Who this process is: random ids, and the origin that everything on workers is marked with.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::error::Error;

/// 16 random hex digits from the operating system.
pub fn random_id() -> Result<String, Error> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(Error::Random)?;
    Ok(hex(&bytes))
}

/// The identity of a manager, in its two forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// As text, for annotations: the uid of the manager's `kube-system` namespace, the operator's namespace and the release, with slashes between; or what
    /// `--origin` says. Without the namespace two installs of one release name would lead side by side under one origin.
    pub text: String,
    /// The first 16 hex digits of its SHA-256, for labels and names, which hold 63 characters at most.
    pub hash: String,
}

impl Origin {
    /// The origin of this release on this manager, unless one is given.
    pub fn new(manager_uid: &str, namespace: &str, release: &str, given: Option<String>) -> Self {
        let text = given.unwrap_or_else(|| format!("{manager_uid}/{namespace}/{release}"));
        let hash = hex(&Sha256::digest(text.as_bytes())[..8]);
        Self { text, hash }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_start_of_the_sha256_of_the_text() {
        // printf 'uid-1/system/multikueue' | sha256sum
        let origin = Origin::new("uid-1", "system", "multikueue", None);
        assert_eq!(origin.text, "uid-1/system/multikueue");
        assert_eq!(origin.hash, "5beb767e0c50b87a");
    }

    #[test]
    fn a_given_origin_replaces_the_text() {
        let origin = Origin::new("uid-1", "system", "multikueue", Some("site-a".into()));
        assert_eq!(origin.text, "site-a");
        assert_ne!(origin.hash, Origin::new("uid-1", "system", "multikueue", None).hash);
    }

    #[test]
    fn random_ids_are_sixteen_hex_digits_and_differ() {
        let (a, b) = (random_id().unwrap(), random_id().unwrap());
        assert_eq!(a.len(), 16);
        assert!(a.chars().all(|c| c.is_ascii_hexdigit()));
        assert_ne!(a, b);
    }
}
