//! The metrics that hooks write, for `/metrics/hooks`. Their names are the hooks' own, without the operator's prefix.
//!
//! The core has the rules; this file has the lock around its store, which is never held across an await.

use std::sync::{Mutex, MutexGuard, PoisonError};

use addon_core::metric::escape::Escaping;
use addon_core::metric::family::{Family, SeriesChange, Shape, Values};
use addon_core::metric::name::LabelName;
use addon_core::metric::{Applied, Operation, Store, exposition};
use names::{HookId, ModuleName, Owner};
use tracing::{error, warn};

use super::Meters;

/// The largest number of metrics with lost samples, and of similar names, that are logged after a run. If there are
/// more, a single mistake in the hook probably causes all of them.
const TOLD: usize = 10;

/// The counter of the page's own errors. It is always zero, but exists because dashboards use its name.
const OWN_ERRORS: &str = "promhttp_metric_handler_errors_total";
const OWN_ERRORS_HELP: &str = "Total number of internal errors encountered by the promhttp metric handler.";

/// The metrics of all hooks.
#[derive(Debug, Default)]
pub(super) struct HookMetrics(Mutex<Store>);

impl HookMetrics {
    fn store(&self) -> MutexGuard<'_, Store> {
        // A panic cannot leave the store inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meters {
    /// Applies the metrics of a successful run. Invalid samples are logged and do not fail the run.
    pub fn apply_hook_metrics(&self, hook: &HookId, operations: Vec<Operation>) {
        if operations.is_empty() {
            return;
        }
        let applied = self.hooks.store().apply(hook, operations);
        tell(hook, &applied);
    }

    /// Removes the series of an owner's hooks, because they no longer run.
    pub fn forget_hook_metrics(&self, owner: &Owner) {
        self.hooks.store().forget(owner);
    }

    /// Renders the metrics of hooks, with names that the scraper can read.
    pub fn render_hooks(&self, escaping: Escaping) -> String {
        let mut text = exposition::page(&self.hooks.store(), escaping, |value| self.secrets.masked(value));
        // If the line exists, a hook has a metric with this name; labels and help texts have no line breaks.
        if !text.contains(&format!("\n# TYPE {OWN_ERRORS} ")) {
            exposition::own(&mut text, OWN_ERRORS, OWN_ERRORS_HELP, &own_errors());
        }
        text
    }
}

fn own_errors() -> Family {
    let cause = LabelName::parse("cause").expect("the name is well-formed");
    let mut family = Family::new(Shape::Counter, [cause]);
    for cause in ["encoding", "gathering"] {
        family.take(Values::of([cause].into_iter()), SeriesChange::By(0.0));
    }
    family
}

fn tell(hook: &HookId, Applied { lost, alike }: &Applied) {
    let name = hook.name.as_str();
    let module = hook.owner.module().map(ModuleName::as_str);
    for one in alike.iter().take(TOLD) {
        warn!(hook = name, module, names = %one, "Two names of a hook's metrics are one name for some scrapers");
    }
    for one in &lost[..lost.len().min(TOLD)] {
        error!(hook = name, module, metric = one.metric.as_str(), error = %one, "Samples of a hook's metric are lost");
    }
    if let Some(more) = lost.len().checked_sub(TOLD).filter(|more| *more > 0) {
        error!(
            hook = name,
            module, more, "Samples of more metrics of the hook are lost"
        );
    }
}

#[cfg(test)]
mod tests {
    use addon_core::metric;
    use names::HookName;
    use report::secrets::Secrets;

    use super::*;

    /// The lines of the page's own error counter.
    const MISTAKES: &str = "# HELP promhttp_metric_handler_errors_total Total number of internal errors encountered by the promhttp metric handler.
# TYPE promhttp_metric_handler_errors_total counter
promhttp_metric_handler_errors_total{cause=\"encoding\"} 0
promhttp_metric_handler_errors_total{cause=\"gathering\"} 0
";

    fn written(meters: &Meters, owner: Owner, text: &str) {
        let hook = HookId {
            owner,
            name: HookName::parse("hooks/a.sh").unwrap(),
        };
        meters.apply_hook_metrics(&hook, metric::parse(text).unwrap().operations);
    }

    #[test]
    fn hooks_have_a_page_of_their_own() {
        let meters = Meters::new("own_");
        assert_eq!(meters.render_hooks(Escaping::default()), MISTAKES);
        let one: Owner = ModuleName::parse("one").unwrap().into();
        written(&meters, Owner::Global, r#"{"name": "size", "set": 1.5}"#);
        written(
            &meters,
            one.clone(),
            r#"{"name": "size", "set": 2} {"name": "size", "add": 2}"#,
        );
        assert_eq!(
            meters.render_hooks(Escaping::default()),
            "# HELP size size\n# TYPE size gauge\n\
             size{hook=\"hooks/a.sh\",module=\"\"} 1.5\n\
             size{hook=\"hooks/a.sh\",module=\"one\"} 2\n"
                .to_owned()
                + MISTAKES
        );
        assert!(!meters.render(None).contains("size{"));
        meters.forget_hook_metrics(&one);
        assert!(!meters.render_hooks(Escaping::default()).contains("module=\"one\""));
    }

    #[test]
    fn no_label_shows_a_secret() {
        let secrets = Secrets::default();
        let meters = Meters::new("own_").hiding(secrets.clone());
        let text = r#"{"name": "size", "set": 1, "labels": {"opensesame": "by opensesame"}}"#;
        written(&meters, Owner::Global, text);
        secrets.learn(std::sync::Arc::new(["opensesame"].into_iter().collect()));
        let page = meters.render_hooks(Escaping::default());
        assert!(page.contains("opensesame=\"by <masked>\""), "{page}");
    }

    #[test]
    fn a_hook_may_have_the_name_that_the_page_would_use() {
        for name in [
            "promhttp_metric_handler_errors_total",
            "promhttp-metric-handler-errors-total",
        ] {
            let meters = Meters::new("own_");
            written(&meters, Owner::Global, &format!("{{\"name\": \"{name}\", \"set\": 1}}"));
            assert_eq!(meters.render_hooks(Escaping::default()).matches("# TYPE").count(), 1);
        }
    }
}
