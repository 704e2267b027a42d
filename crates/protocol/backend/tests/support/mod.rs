//! A worker to connect from, and an authority that signs a server's certificate.
#![allow(dead_code, reason = "each test program uses its part")]
#![allow(
    clippy::unwrap_used,
    reason = "the helpers of these tests fail as the tests do"
)]

pub(crate) mod replies;

use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use auth::Random;
use backend::{Around, ConnectError, Login, Server, Target, TlsMode};
use link::{Limit, PacketMemory, Resources};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use runtime::{Address, Io, Runtime};

/// Longer than a loaded machine needs; a hang is found by it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs a future on a worker, over each driver.
pub(crate) fn on_worker<F: Future<Output = ()> + 'static>(
    make: impl FnOnce() -> F + Clone + Send + 'static,
) {
    for io in [Io::Epoll, Io::Auto] {
        let options = runtime::Options {
            worker_count: 1,
            io,
            pin: false,
            helper_count: 1,
            ..runtime::Options::default()
        };
        let start = || {
            let memory = PacketMemory::new(256 << 20);
            runtime::set_local(Resources::new(memory, Arc::default()));
        };
        let runtime = Runtime::start(options, start).expect("a runtime");
        runtime.block_on_worker(0, make.clone());
        runtime.handle().shutdown(Duration::ZERO);
        runtime.wait().expect("an orderly end");
    }
}

pub(crate) fn resources() -> Rc<Resources> {
    runtime::local().expect("each worker has them")
}

pub(crate) fn limit() -> Limit {
    Limit::after(TIMEOUT)
}

pub(crate) fn tcp(port: u16) -> Address {
    Address::Tcp(([127, 0, 0, 1], port).into())
}

pub(crate) async fn connect(
    address: &Address,
    tls: TlsMode,
    login: &Login,
) -> Result<Server, ConnectError> {
    let target = Target {
        address: address.clone(),
        tls,
        proxy_header: None,
        connect_timeout: TIMEOUT,
        io_timeout: TIMEOUT,
    };
    let source = front::system_random();
    let mut fill = |bytes: &mut [u8]| source(bytes);
    Server::connect(&target, login, &resources(), &mut Random(&mut fill)).await
}

pub(crate) async fn change_user(server: &mut Server, login: &Login) -> Result<(), ConnectError> {
    change_user_around(server, login, Around::default()).await
}

pub(crate) async fn change_user_around(
    server: &mut Server,
    login: &Login,
    around: Around<'_>,
) -> Result<(), ConnectError> {
    let source = front::system_random();
    let mut fill = |bytes: &mut [u8]| source(bytes);
    server
        .change_user(login, around, limit(), &mut Random(&mut fill))
        .await
}

/// Signs certificates.
pub(crate) struct Authority {
    issuer: Arc<Issuer<'static, KeyPair>>,
    /// Its own certificate.
    pub(crate) pem: String,
}

impl Clone for Authority {
    fn clone(&self) -> Authority {
        Authority {
            issuer: Arc::clone(&self.issuer),
            pem: self.pem.clone(),
        }
    }
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        Authority {
            pem: certificate.pem(),
            issuer: Arc::new(Issuer::new(params, key)),
        }
    }

    /// Puts a certificate for `host` into `folder`; what MariaDB takes to show it.
    pub(crate) fn mariadb_arguments(&self, folder: &Path, host: &str) -> Vec<String> {
        let params = CertificateParams::new(vec![host.to_owned()]).expect("a host name");
        let key = KeyPair::generate().expect("a key");
        let signed = params.signed_by(&key, &self.issuer).expect("a certificate");
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            std::fs::write(&path, text).expect("a folder of the test");
            path.display().to_string()
        };
        vec![
            format!("--ssl-ca={}", write("ca.pem", &self.pem)),
            format!("--ssl-cert={}", write("cert.pem", &signed.pem())),
            format!("--ssl-key={}", write("key.pem", &key.serialize_pem())),
        ]
    }
}
