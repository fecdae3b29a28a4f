use kube::config::Kubeconfig;

use super::own_proxy;

fn kubeconfig(proxies: [&str; 2]) -> Kubeconfig {
    let cluster = |name: &str, proxy: &str| {
        format!("- name: {name}\n  cluster:\n    server: https://127.0.0.1:6443\n    {proxy}\n")
    };
    let [a, b] = proxies;
    let text = format!(
        "current-context: two\nclusters:\n{}{}contexts:\n- name: one\n  context: {{cluster: a, user: u}}\n- name: two\n  context: {{cluster: b, user: u}}\n",
        cluster("a", a),
        cluster("b", b)
    );
    Kubeconfig::from_yaml(&text).unwrap()
}

#[test]
fn only_the_proxy_of_the_current_contexts_cluster_counts() {
    let proxy = "proxy-url: http://127.0.0.1:3128";
    assert_eq!(own_proxy(&kubeconfig(["", proxy])), Some("http://127.0.0.1:3128"));
    assert_eq!(own_proxy(&kubeconfig([proxy, ""])), None);
    assert_eq!(own_proxy(&kubeconfig([proxy, "proxy-url: ''"])), None);
}
