//! The operator's logins for registries: all pull secrets of its pod together. They are read again whenever a registry
//! asks for a login.
//!
//! Must never show any part of them, nor go on without a secret that could not be read.

use addon_core::failure::{Class, Failure};
use kube_access::Cluster;
use kube_access::pull_secrets::{Form, PullSecret};
use registry::credentials::{Credentials, ReadCredentials};
use report::Chain;

/// A reader of the pull secrets of this pod.
pub fn of_pod(cluster: Cluster, pod: String) -> ReadCredentials {
    Box::new(move || {
        let (cluster, pod) = (cluster.clone(), pod.clone());
        Box::pin(async move { all(&cluster.pull_secrets(&pod).await?) })
    })
}

fn all(secrets: &[PullSecret]) -> Result<Credentials, Failure> {
    let mut all = Credentials::default();
    for PullSecret { name, form, text } in secrets {
        let read = match form {
            Form::Config => Credentials::config(text),
            Form::OldConfig => Credentials::old_config(text),
        };
        let read = read.map_err(|error| {
            let report = format!("cannot use the pull secret '{name}': {}", Chain(&error));
            Failure::new(Class::Invalid, report)
        })?;
        all = all.and(read);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str, form: Form, text: &str) -> PullSecret {
        PullSecret {
            name: name.to_owned(),
            form,
            text: text.as_bytes().to_vec(),
        }
    }

    #[test]
    fn secrets_of_both_forms_count_together() {
        let login = |user: &str| format!(r#"{{"username":"{user}","password":"s3cr3t"}}"#);
        let one = secret(
            "one",
            Form::Config,
            &format!(r#"{{"auths":{{"a.example":{}}}}}"#, login("a")),
        );
        let two = secret("two", Form::OldConfig, &format!(r#"{{"b.example":{}}}"#, login("b")));
        let all = all(&[one, two]).unwrap();
        for place in ["a.example/x", "b.example/x"] {
            assert!(all.for_place(&place.parse().unwrap()).is_some(), "{place}");
        }
        assert!(all.for_place(&"c.example/x".parse().unwrap()).is_none());
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_named_and_not_shown() {
        let bad = secret("broken", Form::Config, r#"{"auths": s3cr3t}"#);
        let report = all(&[bad]).unwrap_err().report;
        assert!(report.starts_with("cannot use the pull secret 'broken': "), "{report}");
        assert!(!report.contains("s3cr3t"), "{report}");
    }
}
