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
    let asked = sections
        .iter()
        .map(|(owner, settings)| ask(tools, owner, settings, cancel));
    let (mut refusals, mut warnings) = (Vec::new(), Vec::new());
    for ((owner, _), opinions) in sections.iter().zip(join_all(asked).await) {
        let key = owner.values_key();
        for opinion in opinions {
            match opinion {
                Ok(opinion) => {
                    refusals.extend(
                        opinion
                            .refusal
                            .map(|refusal| format!("key '{key}' of {owner}: {refusal}")),
                    );
                    warnings.extend(opinion.warnings.iter().map(|warning| format!("key '{key}': {warning}")));
                }
                Err(failure) => warnings.push(failure.report),
            }
        }
    }
    if refusals.is_empty() && warnings.is_empty() {
        return answer;
    }
    Edit::checked(answer, &refusals, warnings)
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
