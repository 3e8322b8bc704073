//! A leader whose log is not read.

use std::collections::BTreeSet;

use testbed::plane::User;
use testbed::wait::wait_until;

use super::stage::{PATIENCE, Stage};

/// Each run writes far more than a pipe holds. A few runs write more than the operator buffers.
const LOUD_HOOK: &str = r#"#!/bin/bash
if [[ $1 == --config ]]; then
  echo '{"configVersion": "v1", "onStartup": 1, "schedule": [{"crontab": "* * * * * *"}]}'
  exit 0
fi
for ((line = 0; line < 20000; line++)); do echo "line $line of very many"; done
echo "$REPLICA has said everything" >>"$NOTES/loud"
"#;

#[test]
fn a_log_that_nobody_reads_holds_nothing_up() {
    let stage = Stage::build("unread");
    stage.write("global-hooks/loud.sh", LOUD_HOOK);
    let (leader, _unread) = stage.start_unread("a", stage.namespace().kubeconfig(User::Operator));
    leader.wait_until_ready();
    leader.wait_for_answer("/metrics", 200, "addon_operator_log_records_lost_total");
    assert!(stage.notes("loud").len() > 1, "{:?}", stage.notes("loud"));

    // The log must stay unread for at least two renewals of the lease.
    let mut renewals = BTreeSet::new();
    let look = || {
        renewals.insert(stage.lease("renewTime"));
        Ok::<_, String>((renewals.len() > 2).then_some(()))
    };
    wait_until(PATIENCE, "renewals of the lease", look).unwrap();
    leader.wait_for_answer("/healthz", 200, "");
    assert_eq!(stage.lease("holderIdentity"), leader.identity);
    leader.stop();
    assert_eq!(stage.lease("holderIdentity"), "", "it was released");
}
