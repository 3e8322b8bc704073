//! The identity of a container's process: user, groups and capabilities, from the pod and the image.

use std::path::Path;

use k8s_openapi::api::core::v1::{Container, PodSpec};
use rustix::thread::CapabilitySet;
use thiserror::Error;

use super::images::Image;
use super::spec::Identity;

#[derive(Debug, Error, PartialEq, Eq)]
pub(super) enum IdentityError {
    #[error("container has runAsNonRoot and image will run as root")]
    Root,
    #[error("container has runAsNonRoot and image has non-numeric user ({0}), cannot verify user is non-root")]
    Unverifiable(String),
    #[error("the image has no user {0}")]
    Unknown(String),
    #[error("there is no capability {0}")]
    Capability(String),
    #[error("{0} is no number of a user or a group")]
    Number(i64),
}

/// The default capabilities, the same as in every container engine.
const USUAL: [CapabilitySet; 14] = [
    CapabilitySet::CHOWN,
    CapabilitySet::DAC_OVERRIDE,
    CapabilitySet::FOWNER,
    CapabilitySet::FSETID,
    CapabilitySet::KILL,
    CapabilitySet::SETGID,
    CapabilitySet::SETUID,
    CapabilitySet::SETPCAP,
    CapabilitySet::NET_BIND_SERVICE,
    CapabilitySet::NET_RAW,
    CapabilitySet::SYS_CHROOT,
    CapabilitySet::MKNOD,
    CapabilitySet::AUDIT_WRITE,
    CapabilitySet::SETFCAP,
];

pub(super) fn identity(spec: &PodSpec, container: &Container, image: &Image) -> Result<Identity, IdentityError> {
    let (pod, own) = (
        spec.security_context.clone().unwrap_or_default(),
        container.security_context.clone(),
    );
    let own = own.unwrap_or_default();
    let named = image.config.user.as_str();
    let (image_user, image_group) = from_image(named, &image.root)?;
    let asked = own.run_as_user.or(pod.run_as_user).map(number).transpose()?;
    let user = asked.unwrap_or(image_user);
    if own.run_as_non_root.or(pod.run_as_non_root) == Some(true) {
        let name = named.split(':').next().unwrap_or_default();
        if user == 0 {
            return Err(IdentityError::Root);
        }
        if asked.is_none() && name.parse::<u32>().is_err() {
            return Err(IdentityError::Unverifiable(name.to_owned()));
        }
    }
    let group = own.run_as_group.or(pod.run_as_group).map(number).transpose()?;
    let more = pod.supplemental_groups.into_iter().flatten().chain(pod.fs_group);
    let groups: Result<Vec<u32>, _> = more.map(number).collect();
    let privileged = own.privileged == Some(true);
    let capabilities = own.capabilities.unwrap_or_default();
    let (add, drop) = (
        capabilities.add.unwrap_or_default(),
        capabilities.drop.unwrap_or_default(),
    );
    Ok(Identity {
        user,
        group: group.unwrap_or(image_group),
        groups: groups?,
        capabilities: if privileged { u64::MAX } else { allowed(&add, &drop)? },
        no_new_privileges: own.allow_privilege_escalation == Some(false),
    })
}

fn number(number: i64) -> Result<u32, IdentityError> {
    u32::try_from(number).map_err(|_| IdentityError::Number(number))
}

fn allowed(add: &[String], drop: &[String]) -> Result<u64, IdentityError> {
    let mut bits = USUAL.iter().fold(0, |bits, capability| bits | capability.bits());
    for name in drop {
        bits &= !named(name)?;
    }
    for name in add {
        bits |= named(name)?;
    }
    Ok(bits)
}

fn named(name: &str) -> Result<u64, IdentityError> {
    if name == "ALL" {
        return Ok(u64::MAX);
    }
    let plain = name.strip_prefix("CAP_").unwrap_or(name);
    let found = CapabilitySet::from_name(plain).map(|capability| capability.bits());
    found.ok_or_else(|| IdentityError::Capability(name.to_owned()))
}

/// The user and the group that an image names, each by number or by a name in the image's own files.
fn from_image(user: &str, root: &Path) -> Result<(u32, u32), IdentityError> {
    let (user, group) = match user.split_once(':') {
        Some((user, group)) => (user, Some(group)),
        None => (user, None),
    };
    let unknown = || IdentityError::Unknown(user.to_owned());
    let entry = |file: &str, name: &str| {
        let text = fs_err::read_to_string(root.join("etc").join(file)).unwrap_or_default();
        let fields = text
            .lines()
            .map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>());
        fields.into_iter().find(|fields| {
            let number = name.parse::<u32>().is_ok() && fields.get(2).is_some_and(|number| number == name);
            number || fields.first().is_some_and(|first| first == name)
        })
    };
    let field = |entry: &Option<Vec<String>>, index: usize| -> Option<u32> {
        entry.as_ref().and_then(|fields| fields.get(index)?.parse().ok())
    };
    let found = if user.is_empty() { None } else { entry("passwd", user) };
    let number = match user {
        "" => 0,
        user => user.parse().ok().or_else(|| field(&found, 2)).ok_or_else(unknown)?,
    };
    let group = match group {
        None => field(&found, 3).unwrap_or(0),
        Some(group) => match group.parse() {
            Ok(number) => number,
            Err(_) => field(&entry("group", group), 2).ok_or_else(unknown)?,
        },
    };
    Ok((number, group))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_dropped_before_they_are_added() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let only = allowed(&names(&["NET_BIND_SERVICE"]), &names(&["ALL"])).unwrap();
        assert_eq!(only, CapabilitySet::NET_BIND_SERVICE.bits());
        let less = allowed(&[], &names(&["CAP_CHOWN"])).unwrap();
        assert_eq!(less & CapabilitySet::CHOWN.bits(), 0);
        assert_ne!(less & CapabilitySet::FOWNER.bits(), 0);
        assert_eq!(
            allowed(&names(&["FLY"]), &[]).unwrap_err(),
            IdentityError::Capability("FLY".to_owned())
        );
    }

    #[test]
    fn an_image_names_its_user_by_number_or_by_name() {
        let root = tempfile::tempdir().unwrap();
        fs_err::create_dir(root.path().join("etc")).unwrap();
        fs_err::write(root.path().join("etc/passwd"), "root:x:0:0::/:\napp:x:1001:1002::/:\n").unwrap();
        fs_err::write(root.path().join("etc/group"), "staff:x:50:\n").unwrap();
        let user = |text: &str| from_image(text, root.path());
        assert_eq!(user(""), Ok((0, 0)));
        assert_eq!(user("app"), Ok((1001, 1002)));
        assert_eq!(user("1001"), Ok((1001, 1002)));
        assert_eq!(user("7:staff"), Ok((7, 50)));
        assert_eq!(user("ghost"), Err(IdentityError::Unknown("ghost".to_owned())));
    }
}
