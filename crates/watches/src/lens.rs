//! A lens: the part of an object that a binding needs. This is the whole object, the result of its filter, both, or
//! only its name.
//!
//! An object is parsed into a tree only while it is read. A failure with one object must never affect another.

use std::sync::Arc;
use std::time::{Duration, Instant};

use addon_core::digest::Digest;
use addon_core::failure::{Class, Failure};
use addon_core::hook::config::KubernetesBinding;
use addon_core::object::json::Json;
use addon_core::object::snapshot::{Order, Sighting};
use addon_core::object::{ObjectName, ObjectView};
use kube::core::ApiResource;
use names::ModuleName;
use serde_json::Value;

/// Applies a filter to an object; the result or an error.
pub type Sieve = Arc<dyn Fn(&Value) -> Result<Value, String> + Send + Sync>;
/// Compiles the text of a filter.
pub type Compile = fn(&str) -> Result<Sieve, String>;

/// The view on objects that a binding needs: its filter, and how much is kept.
pub struct Lens {
    filter: Option<(String, Sieve)>,
    regard: Regard,
}

/// The part of an object that is read and kept, in addition to the filter's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Regard {
    /// The whole object is kept.
    Kept,
    /// The whole object is read, and not kept.
    Passing,
    /// Only the existence of the object is kept.
    Presence,
}

/// An object on its way to its viewers.
pub(super) struct Item {
    pub(super) name: Arc<ObjectName>,
    pub(super) text: Text,
    pub(super) trace: Trace,
}

/// The origin of an object's state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    /// `metadata.resourceVersion` as a number; 0 if it is none.
    pub(crate) version: u64,
    /// The release that the annotations name.
    pub(crate) release: Option<ModuleName>,
    /// Whether a tool that hooks call made the last write.
    pub(crate) by_tool: bool,
}

/// The text of an object.
pub(super) enum Text {
    /// The text from the server.
    Sent(Box<[u8]>),
    /// The compressed text, as snapshots keep it.
    Kept(Json),
}

/// The result of applying one lens to an object.
pub(super) struct Look {
    /// The visible part, or the error of the filter.
    pub(super) seen: Result<Sighting, String>,
    /// The duration of the filter.
    pub(super) filtered: Option<Duration>,
}

impl std::fmt::Debug for Lens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lens({:?}, {:?})", self.text(), self.regard)
    }
}

impl Lens {
    /// The lens of a binding. Compiles the binding's filter.
    pub(super) fn of(binding: &KubernetesBinding, compile: Compile) -> Result<Self, Failure> {
        let filter = match &binding.jq_filter {
            None => None,
            Some(text) => {
                let sieve = compile(text).map_err(|error| {
                    let report = format!("cannot compile jqFilter of binding '{}': {error}", binding.name);
                    Failure::new(Class::Invalid, report)
                })?;
                Some((text.clone(), sieve))
            }
        };
        let regard = if binding.keep_full_objects {
            Regard::Kept
        } else {
            Regard::Passing
        };
        Ok(Self { filter, regard })
    }

    /// A lens that shows only the existence of objects.
    pub fn presence() -> Self {
        let (filter, regard) = (None, Regard::Presence);
        Self { filter, regard }
    }

    /// A lens that shows whole objects, and keeps them.
    pub(super) fn whole() -> Self {
        let (filter, regard) = (None, Regard::Kept);
        Self { filter, regard }
    }

    /// Sees the result of this filter, and stores nothing else.
    pub fn through(name: &str, sieve: Sieve) -> Self {
        Self {
            filter: Some((name.to_owned(), sieve)),
            regard: Regard::Passing,
        }
    }

    /// The order of the objects in the lens's snapshots.
    pub(super) fn order(&self) -> Order {
        match self.regard {
            Regard::Kept => Order::ByName,
            Regard::Passing | Regard::Presence => Order::ByText,
        }
    }

    pub(super) fn has_filter(&self) -> bool {
        self.filter.is_some()
    }

    pub(super) fn keeps_objects(&self) -> bool {
        self.regard == Regard::Kept
    }

    fn text(&self) -> Option<&str> {
        self.filter.as_ref().map(|(text, _)| text.as_str())
    }

    /// Whether the other lens shows everything that this one shows.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        let alike = self.text() == other.text();
        match self.regard {
            Regard::Presence => true,
            Regard::Passing => alike && (self.has_filter() || other.regard != Regard::Presence),
            Regard::Kept => alike && other.keeps_objects(),
        }
    }

    /// The view of this lens, computed from the view of a wider one.
    pub(super) fn narrow(&self, sighting: Sighting) -> Sighting {
        let Sighting { name, mut view, digest } = sighting;
        if !self.keeps_objects() {
            view.object = None;
        }
        match self.regard {
            Regard::Presence => Sighting {
                name,
                view: ObjectView::default(),
                digest: Digest::of_bytes(&[]),
            },
            Regard::Passing | Regard::Kept => Sighting { name, view, digest },
        }
    }
}

/// The views of an object through all lenses. The object is parsed at most once, and each filter runs once.
pub(super) fn look(item: &Item, resource: &ApiResource, lenses: &[Arc<Lens>]) -> Vec<Look> {
    let mut subject = Subject {
        item,
        resource,
        value: None,
        whole: None,
        results: Vec::new(),
    };
    lenses.iter().map(|lens| subject.through(lens)).collect()
}

/// An object with the results that are already computed.
struct Subject<'a> {
    item: &'a Item,
    resource: &'a ApiResource,
    value: Option<Value>,
    whole: Option<(Json, Digest)>,
    results: Vec<(&'a str, Found)>,
}

#[derive(Clone)]
struct Found {
    result: Result<(Json, Digest), String>,
    took: Duration,
}

impl<'a> Subject<'a> {
    fn through(&mut self, lens: &'a Lens) -> Look {
        let name = Arc::clone(&self.item.name);
        if lens.regard == Regard::Presence {
            let (view, digest) = (ObjectView::default(), Digest::of_bytes(&[]));
            let seen = Ok(Sighting { name, view, digest });
            return Look { seen, filtered: None };
        }
        let Some((text, sieve)) = &lens.filter else {
            let seen = self.whole().map(|(whole, digest)| {
                let object = lens.keeps_objects().then_some(whole);
                let view = ObjectView {
                    object,
                    filter_result: None,
                };
                Sighting { name, view, digest }
            });
            return Look { seen, filtered: None };
        };
        let Found { result, took } = self.result(text, sieve);
        let seen = result.and_then(|(result, digest)| {
            let object = if lens.keeps_objects() {
                Some(self.whole()?.0)
            } else {
                None
            };
            let view = ObjectView {
                object,
                filter_result: Some(result),
            };
            Ok(Sighting { name, view, digest })
        });
        let filtered = Some(took);
        Look { seen, filtered }
    }

    fn result(&mut self, text: &'a str, sieve: &Sieve) -> Found {
        if let Some((_, known)) = self.results.iter().find(|(known, _)| *known == text) {
            return known.clone();
        }
        let begin = Instant::now();
        let result = self.value().and_then(|value| sieve(value));
        let took = begin.elapsed();
        let result = result.map(|value| (Json::from(&value), Digest::of(&value)));
        let found = Found { result, took };
        self.results.push((text, found.clone()));
        found
    }

    fn whole(&mut self) -> Result<(Json, Digest), String> {
        if let Some(whole) = &self.whole {
            return Ok(whole.clone());
        }
        let json = match &self.item.text {
            Text::Kept(json) => json.clone(),
            Text::Sent(_) => Json::from(self.value()?),
        };
        let digest = Digest::of_bytes(json.as_str().as_bytes());
        Ok(self.whole.insert((json, digest)).clone())
    }

    fn value(&mut self) -> Result<&Value, String> {
        if self.value.is_none() {
            self.value = Some(match &self.item.text {
                Text::Kept(json) => json.to_value(),
                Text::Sent(text) => read(text, self.resource)?,
            });
        }
        Ok(self.value.get_or_insert_default())
    }
}

/// Parses an object. An item of a list has no kind and apiVersion, so these are added for hooks.
fn read(text: &[u8], resource: &ApiResource) -> Result<Value, String> {
    let mut value: Value = serde_json::from_slice(text).map_err(|error| format!("it cannot be read: {error}"))?;
    if let Some(object) = value.as_object_mut() {
        for (key, word) in [("apiVersion", &resource.api_version), ("kind", &resource.kind)] {
            object.entry(key).or_insert_with(|| Value::from(word.as_str()));
        }
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;
    use serde_json::json;

    use super::*;

    /// A filter language for tests: the text is a JSON pointer.
    fn pointer(text: &str) -> Sieve {
        let text = text.to_owned();
        Arc::new(move |value| {
            let found = value.pointer(&text).cloned();
            found.ok_or_else(|| format!("no {text}"))
        })
    }

    fn lens(filter: Option<&str>, keeps: bool) -> Arc<Lens> {
        let filter = filter.map(|text| (text.to_owned(), pointer(text)));
        let regard = if keeps { Regard::Kept } else { Regard::Passing };
        Arc::new(Lens { filter, regard })
    }

    fn sent(text: &str) -> Item {
        Item {
            name: Arc::default(),
            text: Text::Sent(text.as_bytes().into()),
            trace: Trace::default(),
        }
    }

    fn resource() -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod"))
    }

    fn seen(item: &Item, lenses: &[Arc<Lens>]) -> Vec<Result<Sighting, String>> {
        let looks = look(item, &resource(), lenses).into_iter();
        looks.map(|look| look.seen).collect()
    }

    #[test]
    fn each_lens_sees_its_own_and_texts_are_shared() {
        let item = sent(r#"{"spec": {"b": 1, "a": 2}, "metadata": {"name": "x"}}"#);
        let lenses = [
            lens(None, true),
            lens(Some("/spec"), true),
            lens(Some("/spec"), false),
            lens(None, false),
            Arc::new(Lens::presence()),
        ];
        let all: Vec<Sighting> = seen(&item, &lenses).into_iter().map(Result::unwrap).collect();
        let whole = all[0].view.object.as_ref().unwrap();
        assert_eq!(
            whole.as_str(),
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x"},"spec":{"a":2,"b":1}}"#
        );
        assert!(all[1].view.object.as_ref().unwrap().is_shared_with(whole));
        let result = all[1].view.filter_result.as_ref().unwrap();
        assert_eq!(result.as_str(), r#"{"a":2,"b":1}"#);
        assert!(all[2].view.filter_result.as_ref().unwrap().is_shared_with(result));
        assert_eq!(all[2].view.object, None);
        assert_eq!(all[3].view, ObjectView::default());
        assert_eq!((all[3].digest, all[1].digest), (all[0].digest, all[2].digest));
        assert_ne!(all[0].digest, all[1].digest);
        assert_eq!(all[4].view, ObjectView::default());
    }

    #[test]
    fn a_filter_that_fails_takes_nothing_from_the_others() {
        let item = sent(r#"{"kind": "Pod"}"#);
        let all = seen(&item, &[lens(Some("/spec"), true), lens(Some("/kind"), false)]);
        assert_eq!(all[0].as_ref().unwrap_err(), "no /spec");
        assert!(all[1].is_ok());
        assert!(seen(&sent("{"), &[lens(None, true)])[0].is_err());
    }

    #[test]
    fn what_is_kept_can_be_looked_at_again() {
        let item = sent(r#"{"spec":{"a":1}}"#);
        let wide = seen(&item, &[lens(None, true)]).remove(0).unwrap();
        let kept = Item {
            name: Arc::default(),
            text: Text::Kept(wide.view.object.clone().unwrap()),
            trace: Trace::default(),
        };
        for other in [lens(None, true), lens(Some("/spec"), true), lens(Some("/spec"), false)] {
            let first = seen(&item, &[Arc::clone(&other)]).remove(0).unwrap();
            let again = seen(&kept, &[other]).remove(0).unwrap();
            assert_eq!((first.view, first.digest), (again.view, again.digest));
        }
    }

    #[test]
    fn a_narrower_lens_needs_no_second_look() {
        let (all, filtered, kept) = (lens(None, true), lens(Some("/a"), false), lens(Some("/a"), true));
        assert!(filtered.is_within(&kept) && !kept.is_within(&filtered));
        assert!(!filtered.is_within(&all) && !filtered.is_within(&lens(Some("/b"), true)));
        assert!(lens(None, false).is_within(&all) && !lens(None, false).is_within(&Lens::presence()));
        assert!(Lens::presence().is_within(&filtered) && !filtered.is_within(&Lens::presence()));
        let item = sent(r#"{"a":1}"#);
        let wide = seen(&item, &[kept]).remove(0).unwrap();
        let narrow = seen(&item, &[Arc::clone(&filtered)]).remove(0).unwrap();
        assert_eq!(filtered.narrow(wide).view, narrow.view);
    }

    #[test]
    fn a_filter_that_cannot_be_compiled_is_the_authors() {
        let binding: KubernetesBinding = serde_json::from_value(json!({
            "name": "pods", "apiVersion": null, "kind": "Pod", "events": [], "runOnSynchronization": true,
            "waitForSynchronization": true, "keepFullObjects": true, "jqFilter": ".", "allowFailure": false, "names": [],
            "labels": null, "fields": [], "namespaces": null, "includeSnapshotsFrom": [], "queue": "main", "group": null,
        }))
        .unwrap();
        let failure = Lens::of(&binding, |_| Err("no such word".to_owned()))
            .map(drop)
            .unwrap_err();
        assert_eq!(failure.class, Class::Invalid);
        assert_eq!(
            failure.report,
            "cannot compile jqFilter of binding 'pods': no such word"
        );
    }
}
