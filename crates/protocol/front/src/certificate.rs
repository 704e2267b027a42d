//! The server's TLS certificate: made at first start, kept by the caller, loaded at each start.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;

/// Why there is no certificate.
#[derive(Debug, Error)]
pub enum CertificateError {
    /// A new one could not be made.
    #[error("a certificate could not be made")]
    NotMade(#[source] rcgen::Error),
    /// The text of the certificate is none.
    #[error("the certificate file holds no certificate in PEM")]
    NoCertificate,
    /// The text of the key is none.
    #[error("the key file holds no private key in PEM")]
    NoKey,
    /// Certificate and key do not fit, or are of a kind that is not known.
    #[error("certificate and key cannot be used")]
    Unusable(#[source] rustls::Error),
}

/// A certificate and its private key, as the texts of their files.
#[derive(Clone)]
pub struct CertificatePair {
    /// The certificate, or the chain of them, in PEM.
    pub certificate_pem: String,
    /// The private key in PEM; for the server's eyes only.
    pub key_pem: String,
}

impl std::fmt::Debug for CertificatePair {
    /// Never shows the private key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CertificatePair").finish_non_exhaustive()
    }
}

impl CertificatePair {
    /// A new pair that signs for itself, valid for `names` and without an end. Clients that check
    /// certificates have to be given it as their authority.
    pub fn generate(names: &[&str]) -> Result<CertificatePair, CertificateError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let pair = rcgen::generate_simple_self_signed(names).map_err(CertificateError::NotMade)?;
        Ok(CertificatePair {
            certificate_pem: pair.cert.pem(),
            key_pem: pair.signing_key.serialize_pem(),
        })
    }

    /// What connections are served with: TLS 1.2 and 1.3.
    pub fn to_tls_config(&self) -> Result<Arc<ServerConfig>, CertificateError> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(self.certificate_pem.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(|_| CertificateError::NoCertificate)?;
        if chain.is_empty() {
            return Err(CertificateError::NoCertificate);
        }
        let key = PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())
            .map_err(|_| CertificateError::NoKey)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(CertificateError::Unusable)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(CertificateError::Unusable)?;
        Ok(Arc::new(config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_pair_can_be_used_and_damaged_ones_cannot() {
        let pair = CertificatePair::generate(&["localhost"]).unwrap();
        assert!(pair.to_tls_config().is_ok());
        let no_certificate = CertificatePair {
            certificate_pem: String::new(),
            ..pair.clone()
        };
        assert!(matches!(
            no_certificate.to_tls_config(),
            Err(CertificateError::NoCertificate)
        ));
        let no_key = CertificatePair {
            key_pem: String::new(),
            ..pair.clone()
        };
        assert!(matches!(
            no_key.to_tls_config(),
            Err(CertificateError::NoKey)
        ));
        let other = CertificatePair::generate(&["localhost"]).unwrap();
        let mixed = CertificatePair {
            key_pem: other.key_pem,
            ..pair
        };
        assert!(matches!(
            mixed.to_tls_config(),
            Err(CertificateError::Unusable(_))
        ));
    }
}
