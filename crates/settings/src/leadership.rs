//! Whether the operator acts only while it holds a lease, and the name under which it holds the lease. These settings
//! have variables only, as in the original.

use std::net::IpAddr;
use std::time::Duration;

use channel_core::leadership::lease::Timing;

use super::ConfigurationError;
use super::labels;
use super::program::Program;
use super::said::{Said, Setting, is_dns_label};
use super::words::{Checked, Words};

/// The time that a leader needs at the end of its lease to end everything that it has started.
const FAREWELL: Duration = Duration::from_secs(5);

/// The condition under which the operator acts on the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// The operator acts at once, because there is no other replica.
    Alone,
    /// The operator acts only while this replica holds the lease.
    Elected {
        lease: &'static str,
        name: Name,
        timing: Timing,
    },
}

/// The name of a lease's holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// The name of the operator's pod, which is unique: an earlier holder with this name has ended.
    Pod(String),
    /// A name that is unique on this machine, with the name of the operator's pod as prefix if that is known.
    Process { pod: Option<String> },
}

/// The label by which clients find the leader's pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderLabel {
    /// The name of the only pod that may get the label: the operator's own.
    pub pod: String,
    /// The key of the label; its value has no meaning.
    pub key: String,
}

/// The Services that lead to the leader. They have no selector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaderServices {
    /// The name of the operator's pod.
    pub pod: String,
    /// The pod's address.
    pub address: IpAddr,
    /// The names of the Services.
    pub names: Vec<String>,
}

/// The value of the variable that asks for several replicas.
enum Wish {
    Replicas,
    Alone,
    Nothing,
}

impl Words<'_> {
    pub(super) fn leadership(&self) -> Checked<Leadership> {
        let wish = match self.wish()?.map(|said| said.text).as_deref() {
            Some("true") => Wish::Replicas,
            Some("false") => Wish::Alone,
            Some(_) | None => Wish::Nothing,
        };
        let name = match (wish, self.program) {
            (Wish::Alone, _) | (Wish::Nothing, Program::ShellOperator) => return Ok(Leadership::Alone),
            (Wish::Replicas, _) => self.required_name()?,
            (Wish::Nothing, Program::AddonOperator) => self.name_if_known()?,
        };
        Ok(Leadership::Elected {
            lease: self.program.lease(),
            name,
            timing: self.timing()?,
        })
    }

    /// The timing of the lease. A leader must have time for a second attempt, and other replicas must wait until it has
    /// ended everything that it has started.
    fn timing(&self) -> Checked<Timing> {
        let [lease, deadline, retry] = self.program.lease_variables();
        let said = |variable| Setting::look_up(self.environment, "", None, &[variable])?.duration();
        let refuse = |name, value: Duration, allowed| ConfigurationError::NotAllowed {
            name,
            value: format!("{value:?}"),
            allowed,
        };
        let usual = Timing::USUAL;
        let lasts = said(lease)?.unwrap_or(usual.lease);
        if lasts < FAREWELL + Duration::from_secs(2) || lasts.subsec_nanos() > 0 {
            return Err(refuse(lease, lasts, "whole seconds, seven or more"));
        }
        let latest = lasts.saturating_sub(FAREWELL);
        let until = said(deadline)?.unwrap_or(latest);
        if until > latest {
            return Err(refuse(
                deadline,
                until,
                "at least five seconds less than the lease lasts",
            ));
        }
        let often = said(retry)?.unwrap_or(usual.retry.min(until / 3));
        if often > until / 2 {
            return Err(refuse(retry, often, "no more than half of the renew deadline"));
        }
        Ok(Timing {
            lease: lasts,
            deadline: until,
            retry: often,
        })
    }

    /// The leader's label. It is optional, because it needs the right to patch pods.
    pub(super) fn leader_label(&self) -> Checked<Option<LeaderLabel>> {
        let variable = self.program.leader_label_variable();
        let said = Setting::look_up(self.environment, "", None, &[variable])?;
        let read = |text: &str| labels::is_key(text).then(|| text.to_owned());
        let Some(key) = said.parsed("the key of a label such as example.com/leader", read)? else {
            return Ok(None);
        };
        let [_, name] = self.program.leadership_variables();
        let pod = self.pod()?.ok_or(ConfigurationError::Needed { name, by: variable })?;
        Ok(Some(LeaderLabel { pod, key }))
    }

    /// The Services that have to lead to this pod, and the pod's address.
    pub(super) fn leader_services(&self) -> Checked<Option<LeaderServices>> {
        let variable = self.program.leader_services_variable();
        let said = Setting::look_up(self.environment, "", None, &[variable])?;
        let read = |text: &str| -> Option<Vec<String>> {
            let names = text.split(',').map(str::trim);
            names.map(|name| is_dns_label(name).then(|| name.to_owned())).collect()
        };
        let Some(names) = said.parsed("names of services, joined by commas", read)? else {
            return Ok(None);
        };
        let missing = |name| ConfigurationError::Needed { name, by: variable };
        let [_, pod_variable] = self.program.leadership_variables();
        let (_, variables) = self.program.listen_address();
        let address = self.said_address()?.filter(|address| !address.is_unspecified());
        Ok(Some(LeaderServices {
            pod: self.pod()?.ok_or(missing(pod_variable))?,
            address: address.ok_or(missing(variables[0]))?,
            names,
        }))
    }

    /// The warning about a value of the variable that means nothing.
    pub(super) fn leadership_remark(&self) -> Checked<Option<String>> {
        let said = self.wish()?;
        let unknown = said.filter(|said| !matches!(said.text.as_str(), "true" | "false"));
        Ok(unknown.map(|Said { name, text }| format!("{name} is '{text}', but only 'true' and 'false' count")))
    }

    fn wish(&self) -> Checked<Option<Said>> {
        let [variable, _] = self.program.leadership_variables();
        Ok(Setting::look_up(self.environment, "", None, &[variable])?.0)
    }

    /// The name of the lease's holder, which several replicas need; all parts of the name have to be set.
    fn required_name(&self) -> Checked<Name> {
        let [wish, pod_variable] = self.program.leadership_variables();
        let missing = |name| ConfigurationError::Needed { name, by: wish };
        let pod = self.pod()?.ok_or(missing(pod_variable))?;
        let (_, variables) = self.program.listen_address();
        let address = self.said_address()?.ok_or(missing(variables[0]))?;
        let namespace = self.program.namespace_variables();
        let namespace = self.namespace()?.ok_or(missing(namespace[0]))?;
        Ok(Name::Pod(pod_name(&pod, address, &namespace)))
    }

    fn name_if_known(&self) -> Checked<Name> {
        let address = self.said_address()?.filter(|address| !address.is_unspecified());
        Ok(match (self.pod()?, address, self.namespace()?) {
            (Some(pod), Some(address), Some(namespace)) => Name::Pod(pod_name(&pod, address, &namespace)),
            (pod, _, _) => Name::Process { pod },
        })
    }

    fn pod(&self) -> Checked<Option<String>> {
        let [_, variable] = self.program.leadership_variables();
        Ok(Setting::look_up(self.environment, "", None, &[variable])?.text())
    }

    fn said_address(&self) -> Checked<Option<IpAddr>> {
        let (flag, variables) = self.program.listen_address();
        let said = self.said(flag, self.args.prometheus_listen_address.as_ref(), variables)?;
        said.parsed("an IP address such as 0.0.0.0 or ::", |text| text.parse().ok())
    }
}

/// The name of the pod in the cluster's DNS.
fn pod_name(pod: &str, address: IpAddr, namespace: &str) -> String {
    let address = address.to_string().replace(['.', ':'], "-");
    format!("{pod}.{address}.{namespace}.pod")
}

/// The name of the holder's pod, if the holder's name contains it.
pub fn pod_in(name: &str) -> Option<&str> {
    let mut labels = name.rsplitn(4, '.');
    let (last, _, _, pod) = (labels.next()?, labels.next()?, labels.next()?, labels.next()?);
    (last == "pod" && !pod.is_empty()).then_some(pod)
}

/// The address of the holder, if the holder's name contains it.
pub fn address_in(name: &str) -> Option<IpAddr> {
    let mut labels = name.split('.');
    let (_, address, _, last) = (labels.next()?, labels.next()?, labels.next()?, labels.next()?);
    if last != "pod" || labels.next().is_some() {
        return None;
    }
    let v4 = address.replace('-', ".").parse().ok();
    v4.or_else(|| address.replace('-', ":").parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_pod_tells_its_address() {
        for (address, name) in [
            ("10.0.0.7", "operator-0.10-0-0-7.ns.pod"),
            ("fd00::7", "operator-0.fd00--7.ns.pod"),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(pod_name("operator-0", address, "ns"), name);
            assert_eq!(address_in(name), Some(address));
            assert_eq!(pod_in(name), Some("operator-0"));
        }
        for name in [
            "",
            "host_0a1b2c3d_7_100",
            "a.b.c.pod",
            "a.10-0-0-7.ns.pod.cluster",
            "a.10-0-0-7.ns.svc",
        ] {
            assert_eq!(address_in(name), None, "{name}");
        }
    }
}
