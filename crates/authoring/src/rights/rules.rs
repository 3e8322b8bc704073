//! Collects rights, and makes the RBAC rules that grant exactly these. It knows which module or hook needs a right, but
//! not why.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// The namespaces in which a right applies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All namespaces, and cluster-wide objects.
    Cluster,
    /// The namespace of the releases, whatever its name is.
    Release,
    /// The given namespace, which is not that of the releases.
    Namespace(String),
}

/// The objects or path of a right.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Objects of a resource; a subresource follows after a slash.
    Objects {
        group: String,
        resource: String,
        /// The name of a single object; none for all.
        name: Option<String>,
    },
    /// A path of the API server.
    Path(String),
}

impl Subject {
    pub(super) fn all(group: &str, resource: &str) -> Self {
        Self::Objects {
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: None,
        }
    }

    pub(super) fn one(group: &str, resource: &str, name: &str) -> Self {
        Self::Objects {
            group: group.to_owned(),
            resource: resource.to_owned(),
            name: Some(name.to_owned()),
        }
    }

    /// The same right, but for all objects.
    fn widened(&self) -> Self {
        match self {
            Self::Objects { group, resource, .. } => Self::all(group, resource),
            Self::Path(_) => self.clone(),
        }
    }
}

/// All rights, each with the modules and hooks that need it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rights(BTreeMap<(Scope, Subject), BTreeMap<String, BTreeSet<String>>>);

/// A rule of an RBAC role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    pub groups: BTreeSet<String>,
    pub resources: BTreeSet<String>,
    pub names: BTreeSet<String>,
    pub paths: BTreeSet<String>,
    pub verbs: BTreeSet<String>,
    /// The modules or hooks that need the right.
    pub needed_by: BTreeSet<String>,
}

/// The properties in which rules must agree to be merged.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Likeness {
    group: Option<String>,
    /// The resource, if the rule names single objects: names of two resources cannot be in one rule.
    named: Option<String>,
    verbs: BTreeSet<String>,
    needed_by: BTreeSet<String>,
}

impl Rights {
    /// Adds a right for a module or hook.
    pub(super) fn allow(&mut self, place: &Scope, subject: Subject, verbs: &[&str], needed_by: &str) {
        let known = self.0.entry((place.clone(), subject)).or_default();
        for verb in verbs {
            let needed = known.entry((*verb).to_owned()).or_default();
            needed.insert(needed_by.to_owned());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The scopes in which rights are needed.
    pub fn places(&self) -> BTreeSet<&Scope> {
        self.0.keys().map(|(place, _)| place).collect()
    }

    /// Turns the rights in unknown namespaces into rights in the whole cluster, because no role can be created in a
    /// namespace that does not exist yet.
    pub(super) fn lift(&mut self, is_unknown: impl Fn(&str) -> bool) {
        let all = std::mem::take(&mut self.0);
        for ((place, subject), verbs) in all {
            let place = match place {
                Scope::Namespace(name) if is_unknown(&name) => Scope::Cluster,
                place => place,
            };
            let known = self.0.entry((place, subject)).or_default();
            for (verb, needed) in verbs {
                known.entry(verb).or_default().extend(needed);
            }
        }
    }

    /// Removes all rights that only other modules need.
    pub(super) fn keep(&mut self, is_asked_for: impl Fn(&str) -> bool) {
        for verbs in self.0.values_mut() {
            for needed in verbs.values_mut() {
                needed.retain(|name| is_asked_for(name));
            }
            verbs.retain(|_, needed| !needed.is_empty());
        }
        self.0.retain(|_, verbs| !verbs.is_empty());
    }

    /// Whether a wider right includes this one: one in the whole cluster, or one about all objects.
    fn is_covered(&self, place: &Scope, subject: &Subject, verb: &str) -> bool {
        let wider = [
            (place.clone(), subject.widened()),
            (Scope::Cluster, subject.clone()),
            (Scope::Cluster, subject.widened()),
        ];
        let same = (place.clone(), subject.clone());
        let mut wider = wider.iter().filter(|wider| **wider != same);
        wider.any(|wider| self.0.get(wider).is_some_and(|verbs| verbs.contains_key(verb)))
    }

    /// The smallest set of rules that grants exactly the rights in one place, in a stable order.
    pub fn rules(&self, place: &Scope) -> Vec<Rule> {
        let mut rules: BTreeMap<Likeness, Rule> = BTreeMap::new();
        let here = self.0.iter().filter(|((of, _), _)| of == place);
        for ((_, subject), verbs) in here {
            let verbs = verbs.iter().filter(|(verb, _)| !self.is_covered(place, subject, verb));
            let (verbs, needed_by): (BTreeSet<String>, Vec<_>) =
                verbs.map(|(verb, needed)| (verb.clone(), needed.clone())).unzip();
            if verbs.is_empty() {
                continue;
            }
            let needed_by: BTreeSet<String> = needed_by.into_iter().flatten().collect();
            let likeness = Likeness::of(subject, verbs, needed_by);
            let rule = Rule {
                verbs: likeness.verbs.clone(),
                needed_by: likeness.needed_by.clone(),
                ..Rule::default()
            };
            rules.entry(likeness).or_insert(rule).take(subject);
        }
        rules.into_values().collect()
    }
}

impl Likeness {
    fn of(subject: &Subject, verbs: BTreeSet<String>, needed_by: BTreeSet<String>) -> Self {
        let (group, named) = match subject {
            Subject::Objects { group, resource, name } => {
                (Some(group.clone()), name.as_ref().map(|_| resource.clone()))
            }
            Subject::Path(_) => (None, None),
        };
        Self {
            group,
            named,
            verbs,
            needed_by,
        }
    }
}

impl Rule {
    fn take(&mut self, subject: &Subject) {
        match subject {
            Subject::Objects { group, resource, name } => {
                self.groups.insert(group.clone());
                self.resources.insert(resource.clone());
                self.names.extend(name.clone());
            }
            Subject::Path(path) => {
                self.paths.insert(path.clone());
            }
        }
    }

    /// The rule in the form of a role.
    pub fn document(&self) -> Value {
        let fields = [
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.paths),
            ("verbs", &self.verbs),
        ];
        let said = fields.into_iter().filter(|(_, values)| !values.is_empty());
        said.map(|(field, values)| (field.to_owned(), json!(values))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(rights: &Rights, place: &Scope) -> Vec<String> {
        let rules = rights.rules(place).into_iter();
        let shown = rules.map(|rule| {
            let needed: Vec<&str> = rule.needed_by.iter().map(String::as_str).collect();
            format!("{} for {}", rule.document(), needed.join(", "))
        });
        shown.collect()
    }

    #[test]
    fn rules_are_few_and_grant_nothing_else() {
        let mut rights = Rights::default();
        let release = Scope::Release;
        for resource in ["configmaps", "services"] {
            rights.allow(&release, Subject::all("", resource), &["get", "create"], "one");
        }
        rights.allow(&release, Subject::all("apps", "deployments"), &["get"], "one");
        rights.allow(&release, Subject::one("", "secrets", "b"), &["get"], "two");
        rights.allow(&release, Subject::one("", "secrets", "a"), &["get"], "two");
        rights.allow(&release, Subject::Path("/metrics".to_owned()), &["get"], "one");
        assert_eq!(
            rules(&rights, &release),
            [
                r#"{"nonResourceURLs":["/metrics"],"verbs":["get"]} for one"#,
                r#"{"apiGroups":[""],"resources":["configmaps","services"],"verbs":["create","get"]} for one"#,
                r#"{"apiGroups":[""],"resourceNames":["a","b"],"resources":["secrets"],"verbs":["get"]} for two"#,
                r#"{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get"]} for one"#,
            ]
        );
    }

    #[test]
    fn what_is_granted_anyway_is_not_granted_twice() {
        let mut rights = Rights::default();
        let elsewhere = Scope::Namespace("kube-system".to_owned());
        rights.allow(&Scope::Cluster, Subject::all("", "secrets"), &["list", "watch"], "one");
        rights.allow(&elsewhere, Subject::all("", "secrets"), &["get", "list"], "two");
        rights.allow(&elsewhere, Subject::one("", "secrets", "a"), &["get", "watch"], "two");
        assert_eq!(
            rules(&rights, &elsewhere),
            [r#"{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]} for two"#]
        );
        assert_eq!(rules(&rights, &Scope::Cluster).len(), 1);
        rights.lift(|name| name == "kube-system");
        assert_eq!(rights.places(), [&Scope::Cluster].into());
        assert_eq!(
            rules(&rights, &Scope::Cluster),
            [r#"{"apiGroups":[""],"resources":["secrets"],"verbs":["get","list","watch"]} for one, two"#]
        );
    }
}
