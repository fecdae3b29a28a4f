//! Where programs come from, seen from outside: `bed-build` with a cache, a `go` and assets of the test's own.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder of this test, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// `bed-build etcd` with an empty cache in this folder and nothing of the environment but what is given.
fn bed_build(folder: &Path, path: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bed-build"));
    command
        .arg("etcd")
        .env_clear()
        .env("PATH", path)
        .env("XDG_CACHE_HOME", folder.join("cache"));
    command
}

/// The PATH with a `go` in front that runs this script.
fn path_with_go(folder: &Path, script: &str) -> String {
    let go = folder.join("go");
    fs::write(&go, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&go, fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

fn texts(output: Output) -> (bool, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn without_go_and_assets_the_error_names_both_ways_out() {
    let folder = folder("neither");
    let (success, _, error) = texts(bed_build(&folder, "").output().unwrap());
    assert!(!success);
    assert!(
        error.contains("install Go") && error.contains("KUBEBUILDER_ASSETS") && error.contains("etcd"),
        "{error}"
    );
}

#[test]
fn assets_are_used_where_they_hold_the_program() {
    let folder = folder("assets");
    let assets = folder.join("assets");
    fs::create_dir(&assets).unwrap();
    let build = || {
        texts(
            bed_build(&folder, "")
                .env("KUBEBUILDER_ASSETS", &assets)
                .output()
                .unwrap(),
        )
    };
    let (success, _, error) = build();
    assert!(!success && error.contains(assets.to_str().unwrap()), "{error}");
    fs::write(assets.join("etcd"), "").unwrap();
    let (success, found, _) = build();
    assert!(success);
    assert_eq!(found.trim_end(), assets.join("etcd").to_str().unwrap());
}

#[test]
fn a_failed_build_shows_what_the_compiler_said_and_leaves_no_program() {
    let folder = folder("failed");
    let path = path_with_go(
        &folder,
        r#"[ "$1" = version ] || { echo "syntax error in x.go"; exit 2; }"#,
    );
    for _ in 0..2 {
        let (success, _, error) = texts(bed_build(&folder, &path).output().unwrap());
        assert!(!success && error.contains("syntax error in x.go"), "{error}");
    }
}

#[test]
fn of_two_builders_one_waits_and_says_so() {
    let folder = folder("two");
    // Says so in a file, and builds only once the test lets it.
    let script = r#"
[ "$1" = version ] && exit 0
while [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done
echo built >> "$(dirname "$0")/builds"
while [ ! -e "$(dirname "$0")/go-on" ]; do sleep 0.05; done
echo program > "$out""#;
    let path = path_with_go(&folder, script);
    let first = bed_build(&folder, &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !folder.join("builds").exists() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut second = bed_build(&folder, &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(second.stderr.take().unwrap())
        .read_line(&mut said)
        .unwrap();
    assert!(said.contains("waiting for another process"), "{said}");
    File::create(folder.join("go-on")).unwrap();
    let (success, found, _) = texts(first.wait_with_output().unwrap());
    assert!(success);
    let mut found_too = String::new();
    second.stdout.take().unwrap().read_to_string(&mut found_too).unwrap();
    assert!(second.wait().unwrap().success());
    assert_eq!(found, found_too);
    assert_eq!(fs::read_to_string(found.trim_end()).unwrap(), "program\n");
    assert_eq!(
        fs::read_to_string(folder.join("builds")).unwrap(),
        "built\n",
        "built once"
    );
}
