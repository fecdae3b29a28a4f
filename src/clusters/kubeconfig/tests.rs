use k8s_openapi::ByteString;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const CA: &str = include_str!("../testdata/ca.pem");
const LEAF: &str = include_str!("../testdata/leaf.pem");

fn base64(text: &str) -> Value {
    serde_json::to_value(ByteString(text.as_bytes().to_vec())).unwrap()
}

/// A kubeconfig that is accepted.
fn good() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": "https://api.internal:6443", "certificate-authority-data": base64(CA)}}],
        "users": [{"name": "u", "user": {"token": "s3cr3t"}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
    })
}

fn with(pointer: &str, value: Value) -> Value {
    let mut file = good();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    file.pointer_mut(parent).unwrap()[key] = value;
    file
}

fn cluster(key: &str, value: Value) -> Value {
    with(&format!("/clusters/0/cluster/{key}"), value)
}

fn user(key: &str, value: Value) -> Value {
    with(&format!("/users/0/user/{key}"), value)
}

fn refused(file: &Value) -> KubeconfigError {
    vet(file.to_string().as_bytes()).unwrap_err()
}

#[test]
fn inline_data_is_accepted() {
    let vetted = vet(good().to_string().as_bytes()).unwrap();
    assert_eq!(vetted.server.to_string(), "https://api.internal:6443/");
    assert_eq!(vetted.roots.len(), 1);
    assert!(vetted.auth.token.is_some() && vetted.proxy.is_none() && vetted.tls_server_name.is_none());
    assert_eq!(vetted.client_not_after, None);

    let mut file = cluster("proxy-url", json!("http://proxy:3128"));
    file["clusters"][0]["cluster"]["tls-server-name"] = json!("other");
    file["users"][0]["user"] = json!({"client-certificate-data": base64(LEAF), "client-key-data": base64("key")});
    let vetted = vet(file.to_string().as_bytes()).unwrap();
    assert_eq!(vetted.proxy.unwrap().to_string(), "http://proxy:3128/");
    assert_eq!(vetted.tls_server_name.as_deref(), Some("other"));
    assert_eq!(vetted.client_not_after.unwrap().to_string(), "2036-11-28T13:56:29Z");
    assert!(vetted.auth.token.is_none());
}

#[test]
fn yaml_with_one_context_and_folded_base64_is_accepted() {
    let data = base64(CA).as_str().unwrap().to_owned();
    let (first, rest) = data.split_at(64);
    let text = format!(
        "clusters:\n- name: k\n  cluster:\n    server: https://h\n    certificate-authority-data: >-\n      {first}\n      {rest}\n\
         users:\n- name: u\n  user: {{token: t}}\ncontexts:\n- name: only\n  context: {{cluster: k, user: u}}\n"
    );
    vet(text.as_bytes()).unwrap();
}

/// Each trick is refused by name, with the field, what was found and what would be right.
#[test]
fn every_trick_is_refused_by_name() {
    let exec = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/touch", "args": ["/tmp/x"]});
    let file = |field| KubeconfigError::File { field, right: "" };
    let url = |field| KubeconfigError::Url {
        field,
        found: String::new(),
        right: "",
    };
    let cases = [
        (
            user("exec", exec),
            KubeconfigError::Plugin { field: "exec" },
            "never run",
        ),
        (
            user("auth-provider", json!({"name": "gcp"})),
            KubeconfigError::Plugin { field: "auth-provider" },
            "never run",
        ),
        (
            user("tokenFile", json!("/var/run/token")),
            file("user.tokenFile"),
            "put the token in token",
        ),
        (
            user("client-certificate", json!("/etc/c")),
            file("user.client-certificate"),
            "client-certificate-data",
        ),
        (
            user("client-key", json!("/etc/k")),
            file("user.client-key"),
            "client-key-data",
        ),
        (
            cluster("certificate-authority", json!("/etc/ca")),
            file("cluster.certificate-authority"),
            "certificate-authority-data",
        ),
        (
            cluster("insecure-skip-tls-verify", json!(true)),
            KubeconfigError::InsecureSkipTlsVerify,
            "tls-server-name",
        ),
        (
            cluster("server", json!("http://api:6443")),
            url("cluster.server"),
            "only https",
        ),
        (
            cluster("server", json!("https://admin:hunter2@api:6443")),
            url("cluster.server"),
            "user or a password",
        ),
        (
            cluster("server", json!("not a url")),
            url("cluster.server"),
            "https URL",
        ),
        (
            cluster("proxy-url", json!("socks5://proxy")),
            url("cluster.proxy-url"),
            "only http and https",
        ),
        (
            user("username", json!("admin")),
            KubeconfigError::BasicAuth,
            "use token",
        ),
    ];
    for (file, expected, hint) in cases {
        let error = refused(&file);
        assert_eq!(
            std::mem::discriminant(&error),
            std::mem::discriminant(&expected),
            "{error}"
        );
        let field = |e: &KubeconfigError| match e {
            KubeconfigError::Plugin { field }
            | KubeconfigError::File { field, .. }
            | KubeconfigError::Url { field, .. } => *field,
            _ => "",
        };
        assert_eq!(field(&error), field(&expected));
        assert!(error.to_string().contains(hint), "{error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn a_kubeconfig_that_leads_nowhere_is_refused_by_name() {
    assert_eq!(vet(b" \n").unwrap_err(), KubeconfigError::Empty);
    let large = vec![b'#'; 5 * MAX_BYTES];
    assert_eq!(
        vet(&large).unwrap_err(),
        KubeconfigError::TooLarge { found: large.len() }
    );
    assert!(matches!(
        vet(b"\xff\xfe").unwrap_err(),
        KubeconfigError::Unparsable { .. }
    ));

    let mut two = good();
    two["contexts"]
        .as_array_mut()
        .unwrap()
        .push(json!({"name": "d", "context": {"cluster": "k", "user": "u"}}));
    two.as_object_mut().unwrap().remove("current-context");
    assert_eq!(refused(&two), KubeconfigError::NoCurrentContext { found: 2 });

    let dangling = |file: &Value, field: &str| match refused(file) {
        KubeconfigError::Dangling { field: found, name } => assert_eq!((found, name.as_str()), (field, "x")),
        other => panic!("{other}"),
    };
    dangling(&with("/current-context", json!("x")), "current-context");
    dangling(&with("/contexts/0/context/cluster", json!("x")), "context.cluster");
    dangling(&with("/contexts/0/context/user", json!("x")), "context.user");

    let missing = |file: &Value, field: &str| match refused(file) {
        KubeconfigError::Missing { field: found, .. } => assert_eq!(found, field),
        other => panic!("{other}"),
    };
    missing(&cluster("server", json!("")), "cluster.server");
    missing(
        &cluster("certificate-authority-data", Value::Null),
        "cluster.certificate-authority-data",
    );
    missing(&with("/users/0/user", json!({})), "user.token");
    missing(&user("client-certificate-data", base64(LEAF)), "user.client-key-data");
    missing(&user("client-key-data", base64("k")), "user.client-certificate-data");
}

#[test]
fn a_leaf_in_the_place_of_the_ca_is_named() {
    let error = refused(&cluster("certificate-authority-data", base64(LEAF)));
    assert!(
        error
            .to_string()
            .contains("is not a CA but the certificate of a server"),
        "{error}"
    );
    // Beside the CA it does no harm.
    vet(cluster("certificate-authority-data", base64(&format!("{LEAF}{CA}")))
        .to_string()
        .as_bytes())
    .unwrap();
    for (data, found) in [
        (json!("%%%"), "is not base64"),
        (base64("no pem"), "holds no certificate in PEM"),
    ] {
        let error = refused(&cluster("certificate-authority-data", data));
        assert!(error.to_string().contains(found), "{error}");
    }
}

#[test]
fn what_the_parser_quotes_is_not_repeated() {
    let text = "users:\n- name: u\n  user: {token: [hunter2}\n";
    let error = vet(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("line") && !error.contains("hunter2"), "{error}");
    let debug = format!("{:?}", vet(good().to_string().as_bytes()).unwrap());
    assert!(!debug.contains("s3cr3t"), "{debug}");
}

proptest! {
    /// Whatever the bytes are: an answer, and no panic.
    #[test]
    fn any_bytes_get_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = vet(&bytes);
    }

    /// Nor where only one value of a good one is any text.
    #[test]
    fn any_text_in_any_field_gets_an_answer(text in "\\PC{0,40}", field in 0..6usize) {
        let pointer = ["/current-context", "/clusters/0/cluster/server", "/clusters/0/cluster/certificate-authority-data",
            "/clusters/0/cluster/proxy-url", "/users/0/user/client-certificate-data", "/contexts/0/context/user"][field];
        let _ = vet(with(pointer, json!(text)).to_string().as_bytes());
    }

    /// A server that is accepted is reached by https and holds no user.
    #[test]
    fn only_https_without_a_user_is_accepted(scheme in "https?|ftp|", user in "([a-z]{1,3}(:[a-z]{1,3})?@)?", host in "[a-z]{1,8}") {
        let text = format!("{scheme}://{user}{host}:6443");
        let accepted = vet(cluster("server", json!(text)).to_string().as_bytes()).is_ok();
        prop_assert_eq!(accepted, scheme == "https" && user.is_empty());
    }
}
