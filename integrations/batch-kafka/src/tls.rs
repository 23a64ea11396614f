//! Encrypted connections to brokers.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

pub(super) type Config = Arc<ClientConfig>;

/// Reads the files with certificates and keys.
pub(super) fn config(
    ca: Option<&PathBuf>,
    certificate: Option<&PathBuf>,
    key: Option<&PathBuf>,
) -> Result<Config, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots(ca)?);
    let config = match (certificate, key) {
        (None, None) => config.with_no_client_auth(),
        (Some(certificate), Some(path)) => {
            let key = PrivateKeyDer::from_pem_file(path);
            let key = key.map_err(|error| unreadable("tls.key", path, &error))?;
            config
                .with_client_auth_cert(certificates("tls.certificate", certificate)?, key)
                .map_err(|error| format!("the certificate and the key of this client do not fit: {error}"))?
        }
        _ => return Err("`tls.certificate` and `tls.key` are set together, or not at all".to_owned()),
    };
    Ok(Arc::new(config))
}

fn roots(ca: Option<&PathBuf>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in certificates("tls.ca", path)? {
                let added = roots.add(certificate);
                added.map_err(|error| unreadable("tls.ca", path, &error))?;
            }
        }
        None => {
            let loaded = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(loaded.certs);
        }
    }
    match roots.is_empty() {
        true => Err("there is no certificate that a broker could be trusted by; set `tls.ca`".to_owned()),
        false => Ok(roots),
    }
}

fn certificates(property: &str, path: &PathBuf) -> Result<Vec<CertificateDer<'static>>, String> {
    let unreadable = |error: rustls::pki_types::pem::Error| unreadable(property, path, &error);
    let certificates = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
    let certificates: Vec<_> = certificates.collect::<Result<_, _>>().map_err(unreadable)?;
    match certificates.is_empty() {
        true => Err(format!(
            "`{}` of `{property}` has no certificate in PEM",
            path.display()
        )),
        false => Ok(certificates),
    }
}

fn unreadable(property: &str, path: &std::path::Path, error: &impl std::fmt::Display) -> String {
    format!("cannot read `{}` of `{property}`: {error}", path.display())
}
