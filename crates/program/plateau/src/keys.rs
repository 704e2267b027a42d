//! Keys of the server: the certificate for TLS and the key for passwords on plain connections. They
//! are created at the first start and kept in the data directory, readable only by the server's
//! user.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use auth::{Random, RsaKey};
use front::CertificatePair;
use settings::Settings;

/// Keys that secure connections.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) tls: Option<Arc<rustls::ServerConfig>>,
    pub(crate) rsa: Arc<RsaKey>,
}

impl Keys {
    /// Reads the keys, and creates missing ones.
    pub(crate) fn open(settings: &Settings, data: &Path) -> Result<Keys> {
        let tls = settings
            .is_on("tls")
            .then(|| tls(settings, data))
            .transpose()?;
        if tls.is_none() && settings.is_on("require_secure_transport") {
            tracing::warn!(
                "no client can log in over TCP: require_secure_transport is on, and tls is off"
            );
        }
        Ok(Keys {
            tls,
            rsa: Arc::new(rsa(data)?),
        })
    }
}

fn tls(settings: &Settings, data: &Path) -> Result<Arc<rustls::ServerConfig>> {
    if let Some(config) = given_tls(settings)? {
        return Ok(config);
    }
    let (certificate, key) = made_pair(data)?;
    read_tls(&certificate, &key)
}

/// What connections are served with by the certificate that the settings name, or `None` if they
/// name none.
///
/// # Errors
///
/// Only one of certificate and key is named, a file cannot be read, or the two do not fit.
pub(crate) fn given_tls(settings: &Settings) -> Result<Option<Arc<rustls::ServerConfig>>> {
    let given = |name: &str| Some(settings.text(name)).filter(|it| !it.is_empty());
    match (given("tls_certificate"), given("tls_key")) {
        (Some(certificate), Some(key)) => {
            read_tls(Path::new(certificate), Path::new(key)).map(Some)
        }
        (None, None) => Ok(None),
        _ => anyhow::bail!("`tls_certificate` and `tls_key` belong together: set both or none"),
    }
}

fn read_tls(certificate: &Path, key: &Path) -> Result<Arc<rustls::ServerConfig>> {
    let read = |path: &Path| {
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let pair = CertificatePair {
        certificate_pem: read(certificate)?,
        key_pem: read(key)?,
    };
    pair.to_tls_config().with_context(|| {
        format!(
            "cannot use certificate {} with key {}",
            certificate.display(),
            key.display()
        )
    })
}

/// The pair in the data directory, created at the first start.
fn made_pair(data: &Path) -> Result<(PathBuf, PathBuf)> {
    let (certificate, key) = (data.join("server-cert.pem"), data.join("server-key.pem"));
    if !certificate.exists() || !key.exists() {
        let pair = CertificatePair::generate(&["localhost", "127.0.0.1", "::1"])?;
        write_secret(&certificate, &pair.certificate_pem)?;
        write_secret(&key, &pair.key_pem)?;
    }
    Ok((certificate, key))
}

fn rsa(data: &Path) -> Result<RsaKey> {
    let path = data.join("private-key.pem");
    if path.exists() {
        let pem =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        return RsaKey::from_private_pem(&pem).with_context(|| path.display().to_string());
    }
    let random = front::system_random();
    let mut fill = |bytes: &mut [u8]| random(bytes);
    let key = RsaKey::generate(&mut Random(&mut fill))?;
    write_secret(&path, &key.private_pem()?)?;
    Ok(key)
}

/// Writes the file whole or not at all: it is written under another name and renamed, so that a
/// crash leaves no half key.
fn write_secret(path: &Path, text: &str) -> Result<()> {
    let beside = path.with_extension("new");
    let write = || -> std::io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn keys_are_made_once_and_kept_from_others() {
        let folder = testkit::Folder::new("keys").unwrap();
        let settings = Settings::default();
        let keys = Keys::open(&settings, folder.path()).unwrap();
        assert!(keys.tls.is_some());
        let again = Keys::open(&settings, folder.path()).unwrap();
        assert_eq!(keys.rsa.public_pem(), again.rsa.public_pem());
        for entry in fs::read_dir(folder.path()).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0);
        }
    }

    #[test]
    fn half_a_pair_is_refused() {
        let folder = testkit::Folder::new("keys").unwrap();
        let mut settings = Settings::default();
        settings.set("tls_key", "key.pem").unwrap();
        let error = Keys::open(&settings, folder.path()).unwrap_err();
        assert!(error.to_string().contains("belong together"));
    }
}
