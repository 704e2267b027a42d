//! [`Target`]: where a server is, and how it is spoken to.

use std::sync::Arc;
use std::time::Duration;

use link::TlsEnd;
use runtime::Address;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use thiserror::Error;
use wire::ProxyVersion;

/// Where a server is.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its address.
    pub address: Address,
    /// Whether TLS protects the connection.
    pub tls: TlsMode,
    /// Whether a header of the PROXY protocol tells the server who the client is. A server that
    /// does not expect one refuses the connection.
    pub proxy_header: Option<ProxyVersion>,
    /// Most time for connecting and logging in.
    pub connect_timeout: Duration,
    /// Most time for the rest of a packet, and for the server to take what is sent.
    pub io_timeout: Duration,
}

impl Target {
    /// Whether a connection to one is as good as a connection to the other: only the times differ.
    pub fn is_same_place(&self, other: &Target) -> bool {
        self.address == other.address
            && self.tls == other.tls
            && self.proxy_header == other.proxy_header
    }
}

/// Whether TLS protects a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TlsMode {
    /// Never.
    Off,
    /// Always: a server that does not offer it is not logged in to.
    Required(TlsClient),
}

/// How a server's certificate is checked. Cheap to clone; make one and keep it.
#[derive(Debug, Clone)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    /// The authorities that are trusted, in PEM; `None` if the certificate is not checked.
    authorities: Option<Arc<str>>,
}

impl PartialEq for TlsClient {
    /// Whether both take the same certificates.
    fn eq(&self, other: &TlsClient) -> bool {
        self.name == other.name && self.authorities == other.authorities
    }
}

impl Eq for TlsClient {}

/// Why certificates cannot be checked as asked.
#[derive(Debug, Error)]
pub enum TlsClientError {
    /// The text holds no certificate in PEM.
    #[error("the authority's file holds no certificate in PEM")]
    NoAuthority,
    /// The name can be in no certificate.
    #[error("{name} is not a host name")]
    BadName {
        /// The name.
        name: String,
    },
    /// The certificate cannot be used.
    #[error("the authority's certificate cannot be used")]
    Unusable(#[source] rustls::Error),
}

impl TlsClient {
    /// Accepts a certificate that one of the authorities in `authorities_pem` has signed for
    /// `host`: a name or an address.
    pub fn verified(authorities_pem: &str, host: &str) -> Result<TlsClient, TlsClientError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authorities_pem.as_bytes()) {
            let certificate = certificate.map_err(|_| TlsClientError::NoAuthority)?;
            roots.add(certificate).map_err(TlsClientError::Unusable)?;
        }
        if roots.is_empty() {
            return Err(TlsClientError::NoAuthority);
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsClientError::BadName {
            name: host.to_owned(),
        })?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsClientError::Unusable)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(TlsClient {
            config: Arc::new(config),
            name,
            authorities: Some(authorities_pem.into()),
        })
    }

    /// The end of a link's TLS that checks the other's certificate so.
    pub fn end(&self) -> TlsEnd {
        TlsEnd::Client(Arc::clone(&self.config), self.name.clone())
    }

    /// Accepts every certificate. Somebody who listens learns nothing; somebody who stands between
    /// the two sides and answers in the server's place does.
    pub fn unverified() -> Result<TlsClient, TlsClientError> {
        let provider = provider();
        let any = AnyCertificate(Arc::clone(&provider));
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsClientError::Unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(any))
            .with_no_client_auth();
        // There is no name to tell.
        config.enable_sni = false;
        let name = ServerName::try_from("localhost").map_err(|_| TlsClientError::BadName {
            name: "localhost".to_owned(),
        })?;
        Ok(TlsClient {
            config: Arc::new(config),
            name,
            authorities: None,
        })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Accepts every certificate, but no handshake that is not signed with its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_checked_is_named() {
        let pair = rcgen::generate_simple_self_signed(vec!["db".to_owned()]).unwrap();
        let authority = pair.cert.pem();
        assert!(TlsClient::verified(&authority, "db").is_ok());
        assert!(TlsClient::verified(&authority, "127.0.0.1").is_ok());
        assert!(TlsClient::unverified().is_ok());
        for text in ["", "no certificate"] {
            let made = TlsClient::verified(text, "db");
            assert!(matches!(made, Err(TlsClientError::NoAuthority)));
        }
        let made = TlsClient::verified(&authority, "no name");
        assert!(matches!(made, Err(TlsClientError::BadName { name }) if name == "no name"));
    }
}
