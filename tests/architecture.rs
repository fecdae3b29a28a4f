//! The shape of the code: which module may use which, and that the core is pure.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Each module with the modules that it may use, as the table of the design has them.
const MAY_USE: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("resources", &["api"]),
    ("workload", &["api", "resources"]),
    ("capacity", &["api", "resources"]),
    ("scheduling", &["api", "resources", "workload", "capacity"]),
    ("lifecycle", &["api", "workload"]),
    (
        "dispatcher",
        &["api", "resources", "workload", "capacity", "scheduling", "lifecycle"],
    ),
    (
        "clusters",
        &["api", "resources", "workload", "capacity", "lifecycle", "dispatcher"],
    ),
    (
        "app",
        &[
            "api",
            "resources",
            "workload",
            "capacity",
            "scheduling",
            "lifecycle",
            "dispatcher",
            "clusters",
        ],
    ),
];

/// What no pure module names: clients, runtimes, clocks, chance, and maps without an order.
const IMPURE: &[&str] = &[
    "kube::Client",
    "kube::client",
    "kube::Api",
    "tokio",
    "Instant",
    "SystemTime",
    "Timestamp::now",
    "Zoned::now",
    "std::thread",
    "std::fs",
    "std::net",
    "std::env",
    "rand::",
    "RandomState",
    "HashMap",
    "HashSet",
    "async fn",
    "println!",
];

/// Modules that may do all of that.
const RIM: &[&str] = &["clusters", "app"];

fn sources(module: &str) -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, files: &mut Vec<(PathBuf, String)>) {
        let mut entries: Vec<_> = fs::read_dir(dir).unwrap().map(|e| e.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                walk(&path, files);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    let mut files = Vec::new();
    walk(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(module),
        &mut files,
    );
    assert!(!files.is_empty(), "module {module} has no files");
    files
}

/// Lines of code, with their numbers; comments are not code, and tests of a module may use what they like.
fn code(path: &Path, text: &str) -> Vec<(usize, String)> {
    let in_tests =
        path.file_name().is_some_and(|n| n == "tests.rs") || path.components().any(|c| c.as_os_str() == "tests");
    if in_tests {
        return Vec::new();
    }
    let lines = text
        .lines()
        .enumerate()
        .take_while(|(_, line)| !line.starts_with("#[cfg(test)]"));
    lines
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .map(|(n, line)| (n + 1, line.to_owned()))
        .collect()
}

#[test]
fn every_module_is_in_the_table() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut modules: Vec<_> = fs::read_dir(src)
        .unwrap()
        .map(|e| e.unwrap())
        .filter(|e| e.path().is_dir())
        .collect();
    modules.sort_by_key(fs::DirEntry::file_name);
    for module in modules {
        let name = module.file_name().into_string().unwrap();
        assert!(
            MAY_USE.iter().any(|(known, _)| *known == name),
            "src/{name} is not in the table of modules"
        );
    }
}

#[test]
fn arrows_go_down_the_table_only() {
    let all: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let mut wrong = Vec::new();
    for (module, allowed) in MAY_USE {
        for (path, text) in sources(module) {
            for (number, line) in code(&path, &text) {
                let forbidden = all.keys().filter(|other| *other != module && !allowed.contains(other));
                for other in forbidden.filter(|other| line.contains(&format!("crate::{other}"))) {
                    wrong.push(format!(
                        "{}:{number}: {module} uses {other}: {}",
                        path.display(),
                        line.trim()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_core_names_no_client_no_clock_and_no_unordered_map() {
    let mut wrong = Vec::new();
    for (module, _) in MAY_USE.iter().filter(|(module, _)| !RIM.contains(module)) {
        for (path, text) in sources(module) {
            for (number, line) in code(&path, &text) {
                for word in IMPURE.iter().filter(|word| line.contains(*word)) {
                    wrong.push(format!("{}:{number}: {word}: {}", path.display(), line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_file_outgrows_one_idea() {
    let mut long = Vec::new();
    for (module, _) in MAY_USE {
        for (path, text) in sources(module) {
            let lines = code(&path, &text).last().map_or(0, |(number, _)| *number);
            if lines > 400 {
                long.push(format!("{}: {lines} lines before its tests", path.display()));
            }
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}
