//! The three facts about a certificate that a message for people needs, read off its DER (RFC 5280, section 4.1).
//!
//! This judges nothing: verification is rustls's. An X.509 library would be thirty crates for these three facts.

use k8s_openapi::jiff::{Timestamp, civil, tz::TimeZone};

/// What is read of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Certificate {
    /// `basicConstraints` says CA, or the certificate is older than extensions (version 1).
    pub is_ca: bool,
    /// Issuer and subject are the same.
    pub self_issued: bool,
    /// End of its validity.
    pub not_after: Timestamp,
}

const SEQUENCE: u8 = 0x30;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const BOOLEAN: u8 = 0x01;
const OID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// 2.5.29.19
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];

/// Reads a certificate; none when it is not DER of the expected form.
pub fn read(der: &[u8]) -> Option<Certificate> {
    let mut whole = Reader(der);
    let mut certificate = Reader(whole.expect(SEQUENCE)?);
    let mut tbs = Reader(certificate.expect(SEQUENCE)?);
    tbs.optional(VERSION);
    tbs.next()?; // serial number
    tbs.next()?; // signature algorithm
    let issuer = tbs.expect(SEQUENCE)?;
    let mut validity = Reader(tbs.expect(SEQUENCE)?);
    validity.next()?; // not before
    let (tag, text) = validity.next()?;
    let not_after = time(tag, text)?;
    let subject = tbs.expect(SEQUENCE)?;
    tbs.next()?; // public key
    let mut extensions = None;
    while let Some((tag, content)) = tbs.next() {
        if tag == EXTENSIONS {
            extensions = Some(content);
        }
    }
    Some(Certificate {
        is_ca: extensions.is_none_or(|content| says_ca(content).unwrap_or(false)),
        self_issued: issuer == subject,
        not_after,
    })
}

fn says_ca(extensions: &[u8]) -> Option<bool> {
    let mut list = Reader(Reader(extensions).expect(SEQUENCE)?);
    while let Some((tag, content)) = list.next() {
        let mut extension = Reader(content);
        if tag != SEQUENCE || extension.expect(OID)? != BASIC_CONSTRAINTS {
            continue;
        }
        extension.optional(BOOLEAN); // critical
        let mut value = Reader(Reader(extension.expect(OCTETS)?).expect(SEQUENCE)?);
        return Some(matches!(value.next(), Some((BOOLEAN, [flag])) if *flag != 0));
    }
    Some(false)
}

/// Both forms end in `Z` in certificates; two-digit years below 50 are of this century.
fn time(tag: u8, text: &[u8]) -> Option<Timestamp> {
    let text = std::str::from_utf8(text).ok()?;
    let full = match tag {
        UTC_TIME if text.get(..2)? < "50" => format!("20{text}"),
        UTC_TIME => format!("19{text}"),
        GENERALIZED_TIME => text.to_owned(),
        _ => return None,
    };
    let number = |range: std::ops::Range<usize>| full.get(range)?.parse::<i8>().ok();
    civil::DateTime::new(
        full.get(..4)?.parse().ok()?,
        number(4..6)?,
        number(6..8)?,
        number(8..10)?,
        number(10..12)?,
        number(12..14)?,
        0,
    )
    .ok()?
    .to_zoned(TimeZone::UTC)
    .ok()
    .map(|zoned| zoned.timestamp())
}

/// Walks over the values of one DER level.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            let bytes = usize::from(first & 0x7f);
            if bytes == 0 || bytes > 4 {
                return None;
            }
            let (head, rest) = rest.split_at_checked(bytes)?;
            (head.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }

    fn expect(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next()
            .filter(|(found, _)| *found == tag)
            .map(|(_, content)| content)
    }

    fn optional(&mut self, tag: u8) {
        if self.0.first() == Some(&tag) {
            self.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;

    use super::*;

    #[test]
    fn a_ca_and_a_leaf_are_told_apart() {
        let of = |pem: &str| read(&CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        let ca = of(include_str!("testdata/ca.pem"));
        assert!(ca.is_ca && ca.self_issued);
        // Beyond 2049 certificates carry the other form of time.
        assert_eq!(ca.not_after.to_string(), "2126-11-07T13:56:29Z");
        let leaf = of(include_str!("testdata/leaf.pem"));
        assert!(!leaf.is_ca && !leaf.self_issued);
        assert_eq!(leaf.not_after.to_string(), "2036-11-28T13:56:29Z");
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }

        #[test]
        fn a_certificate_with_any_byte_changed_gets_an_answer(at in any::<proptest::sample::Index>(), byte in any::<u8>()) {
            let mut der = CertificateDer::from_pem_slice(include_bytes!("testdata/leaf.pem")).unwrap().to_vec();
            let at = at.index(der.len());
            der[at] = byte;
            let _ = read(&der);
        }
    }
}
