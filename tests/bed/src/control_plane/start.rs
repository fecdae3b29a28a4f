//! How the programs of a control plane are started.

use std::path::{Path, PathBuf};

use super::{ControlPlane, ControlPlaneOptions};
use crate::error::{Error, Result};
use crate::kubeconfig::{Credentials, Kubeconfig, SERVER_NAME};
use crate::pki::{self, Authority, Certificate};
use crate::process::Process;
use crate::programs::Program;
use crate::{kwok, ports};

/// Every request, with who, what and when, but without bodies.
const AUDIT_POLICY: &str = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n- level: Metadata\n";

const ISSUER: &str = "https://kubernetes.default.svc";

impl ControlPlane {
    /// Starts a control plane whose API server keeps its objects in `etcd` under its name, and waits until it is ready.
    pub(crate) async fn start(name: &str, folder: PathBuf, etcd: &str, options: ControlPlaneOptions) -> Result<Self> {
        std::fs::create_dir(&folder).map_err(Error::io("create", &folder))?;
        let mut tries = 0;
        loop {
            let plane = Self::prepare(name, folder.clone(), etcd, options.clone()).await?;
            plane.api_server.start()?;
            match plane.ready().await {
                Ok(()) => {
                    for process in [&plane.controller_manager, &plane.scheduler, &plane.kwok]
                        .into_iter()
                        .flatten()
                    {
                        process.start()?;
                    }
                    plane.default_account().await?;
                    for process in plane.processes() {
                        if !process.is_running() {
                            return Err(process.exited());
                        }
                    }
                    return Ok(plane);
                }
                // Somebody else took the port in between.
                Err(Error::Exited { log, .. }) if tries < 3 && log.contains("address already in use") => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes all files and arguments; starts nothing.
    async fn prepare(name: &str, folder: PathBuf, etcd: &str, options: ControlPlaneOptions) -> Result<Self> {
        let port = ports::free()?;
        let server = format!("https://127.0.0.1:{port}");
        let authority = Authority::new(name)?;
        let ca = authority.pem();
        let year = std::time::Duration::from_hours(365 * 24);
        // Components carry their usual names, for audit logs, and the group that may do everything: the roles of single
        // controllers are not what is tested here.
        let identity = |user: &str| -> Result<Kubeconfig> {
            let certificate = authority.client(user, Some("system:masters"), year)?;
            Ok(Kubeconfig::new(
                name,
                server.clone(),
                ca.clone(),
                Credentials::Certificate(certificate),
            ))
        };
        let admin = identity("admin")?;
        admin.write_to(&folder.join("admin.kubeconfig"))?;

        let files = Files::write(&folder, &authority)?;
        let api_server = Process::new(
            format!("kube-apiserver of {name}"),
            Program::ApiServer.path().await?,
            files.api_server_args(&folder, port, etcd, name, &options),
            folder.join("kube-apiserver.log"),
        );
        let component = async |program: Program, args: Vec<String>| -> Result<Process> {
            let program_name = program.name();
            let kubeconfig = folder.join(format!("{program_name}.kubeconfig"));
            identity(&format!("system:{program_name}"))?.write_to(&kubeconfig)?;
            let mut all = vec![format!("--kubeconfig={}", kubeconfig.display())];
            all.extend(args);
            let log = folder.join(format!("{program_name}.log"));
            Ok(Process::new(
                format!("{program_name} of {name}"),
                program.path().await?,
                all,
                log,
            ))
        };
        let controller_manager = if options.has(Program::ControllerManager) {
            Some(component(Program::ControllerManager, files.controller_manager_args(&options)).await?)
        } else {
            None
        };
        let scheduler = if options.has(Program::Scheduler) {
            Some(component(Program::Scheduler, scheduler_args(&options)).await?)
        } else {
            None
        };
        let kwok = if options.has(Program::Kwok) {
            let stages = folder.join("stages.yaml");
            write(&stages, kwok::STAGES)?;
            Some(component(Program::Kwok, kwok_args(&stages)).await?)
        } else {
            None
        };
        let name = name.to_owned();
        Ok(Self {
            name,
            folder,
            port,
            options,
            authority,
            admin,
            api_server,
            controller_manager,
            scheduler,
            kwok,
        })
    }
}

/// The files that the API server and the controller manager read.
struct Files {
    ca: String,
    certificate: String,
    key: String,
    token_private: String,
    token_public: String,
    audit_policy: String,
}

impl Files {
    fn write(folder: &Path, authority: &Authority) -> Result<Self> {
        let Certificate { certificate, key } = authority.serving(&[
            SERVER_NAME,
            "kubernetes.default",
            "kubernetes",
            "localhost",
            "127.0.0.1",
            "10.0.0.1",
        ])?;
        let (private, public) = pki::token_keys()?;
        let put = |name: &str, text: &str| -> Result<String> {
            let path = folder.join(name);
            write(&path, text)?;
            Ok(path.display().to_string())
        };
        Ok(Self {
            ca: put("ca.crt", &authority.pem())?,
            certificate: put("serving.crt", &certificate)?,
            key: put("serving.key", &key)?,
            token_private: put("tokens.key", &private)?,
            token_public: put("tokens.pub", &public)?,
            audit_policy: put("audit-policy.yaml", AUDIT_POLICY)?,
        })
    }

    fn api_server_args(
        &self,
        folder: &Path,
        port: u16,
        etcd: &str,
        name: &str,
        options: &ControlPlaneOptions,
    ) -> Vec<String> {
        let mut args = vec![
            format!("--etcd-servers={etcd}"),
            format!("--etcd-prefix=/{name}"),
            "--bind-address=127.0.0.1".to_owned(),
            format!("--secure-port={port}"),
            format!("--cert-dir={}", folder.display()),
            format!("--tls-cert-file={}", self.certificate),
            format!("--tls-private-key-file={}", self.key),
            format!("--client-ca-file={}", self.ca),
            "--authorization-mode=RBAC".to_owned(),
            format!("--service-account-issuer={ISSUER}"),
            format!("--service-account-key-file={}", self.token_public),
            format!("--service-account-signing-key-file={}", self.token_private),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
            // The address of the `kubernetes` service must not be a loopback one, and nobody here uses it.
            "--endpoint-reconciler-type=none".to_owned(),
            // Benches put hundreds of requests under way at once.
            "--max-requests-inflight=3000".to_owned(),
            "--max-mutating-requests-inflight=1000".to_owned(),
        ];
        if !options.needs_service_accounts() {
            args.push("--disable-admission-plugins=ServiceAccount".to_owned());
        }
        if options.audit {
            args.push(format!("--audit-policy-file={}", self.audit_policy));
            args.push(format!("--audit-log-path={}", folder.join("audit.log").display()));
        }
        args.extend(options.api_server_args.iter().cloned());
        args
    }

    fn controller_manager_args(&self, options: &ControlPlaneOptions) -> Vec<String> {
        let mut args = lifted_limits();
        args.push(format!("--service-account-private-key-file={}", self.token_private));
        args.push(format!("--root-ca-file={}", self.ca));
        args.push("--concurrent-job-syncs=50".to_owned());
        args.extend(options.controller_manager_args.iter().cloned());
        args
    }
}

fn scheduler_args(options: &ControlPlaneOptions) -> Vec<String> {
    let mut args = lifted_limits();
    args.extend(options.scheduler_args.iter().cloned());
    args
}

/// One instance each, no port of its own, and client limits that are not what a benchmark measures (defaults: 20 and 50).
fn lifted_limits() -> Vec<String> {
    [
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=1000",
    ]
    .map(ToOwned::to_owned)
    .to_vec()
}

fn kwok_args(stages: &Path) -> Vec<String> {
    vec![
        format!("--config={}", stages.display()),
        "--manage-all-nodes=false".to_owned(),
        format!(
            "--manage-nodes-with-annotation-selector={}={}",
            kwok::NODE_ANNOTATION,
            kwok::NODE_ANNOTATION_VALUE
        ),
        "--node-lease-duration-seconds=40".to_owned(),
        "--node-ip=127.0.0.1".to_owned(),
    ]
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(Error::io("write", path))
}
