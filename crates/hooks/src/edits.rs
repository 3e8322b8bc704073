//! Judges an edit of the ConfigMap: first by schemas, then by the executables that check the settings of their modules.
//!
//! Must never refuse an edit because an executable gave no answer: that is a warning.

use addon_core::failure::Failure;
use addon_core::operator::edit::Edit;
use addon_core::review::response::AdmissionResponse;
use futures::future::join_all;
use names::Owner;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::Tools;
use crate::settings_check::{DEADLINE, Examiner, Opinion};

pub async fn judge(tools: &Tools, edit: Edit, cancel: &CancellationToken) -> AdmissionResponse {
    let (answer, sections) = blocking::run(move || {
        let answer = edit.judge();
        let sections = if answer.allowed { edit.sections() } else { Vec::new() };
        (answer, sections)
    })
    .await;
    let Objections { refusals, warnings } = objections(tools, &sections, cancel).await;
    if refusals.is_empty() && warnings.is_empty() {
        return answer;
    }
    let refused = |(owner, refusal): (Owner, String)| format!("key '{}' of {owner}: {refusal}", owner.values_key());
    let refusals: Vec<String> = refusals.into_iter().map(refused).collect();
    Edit::checked(answer, &refusals, warnings)
}

/// The words of the executables that check the settings of their modules.
#[derive(Debug, Default)]
pub struct Objections {
    /// The sections that are refused, by owner, with the reason.
    pub refusals: Vec<(Owner, String)>,
    pub warnings: Vec<String>,
}

/// Asks the executables about sections, each with the defaults of its schema.
pub async fn objections(tools: &Tools, sections: &[(Owner, Value)], cancel: &CancellationToken) -> Objections {
    let asked = sections
        .iter()
        .map(|(owner, settings)| ask(tools, owner, settings, cancel));
    let mut objections = Objections::default();
    for ((owner, _), opinions) in sections.iter().zip(join_all(asked).await) {
        let key = owner.values_key();
        for opinion in opinions {
            match opinion {
                Ok(opinion) => {
                    let refusal = opinion.refusal.map(|refusal| (owner.clone(), refusal));
                    objections.refusals.extend(refusal);
                    let warnings = opinion.warnings.iter().map(|warning| format!("key '{key}': {warning}"));
                    objections.warnings.extend(warnings);
                }
                Err(failure) => objections.warnings.push(failure.report),
            }
        }
    }
    objections
}

/// The opinions of all executables that check the owner's settings.
async fn ask(
    tools: &Tools,
    owner: &Owner,
    settings: &Value,
    cancel: &CancellationToken,
) -> Vec<Result<Opinion, Failure>> {
    let catalogue = tools.ground.catalogue.borrow().clone();
    let programs = catalogue.checks(owner);
    if programs.is_empty() {
        return Vec::new();
    }
    let acting = match tools.ground.acting(owner, DEADLINE).await {
        Ok(acting) => acting,
        Err(failure) => return vec![Err(failure.within(format_args!("the settings check of {owner}")))],
    };
    let environment = acting.environment();
    let examiner = Examiner {
        spawner: &tools.ground.spawner,
        tmp: &tools.ground.tmp,
        environment: &environment,
    };
    join_all(
        programs
            .iter()
            .map(|program| examiner.ask(owner, program, settings, cancel)),
    )
    .await
}
