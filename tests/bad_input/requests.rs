//! A restart that finds everything as it was asks little, however many modules there are.

use testbed::plane::User;

use super::stage::{CONVERGED, Stage};

/// Far less than one request for each module and object.
const FEW: usize = 15;

#[test]
fn a_restart_with_nothing_changed_reads_no_module_by_itself() {
    let stage = Stage::build("few-requests");
    let names: Vec<String> = (b'a'..=b't')
        .map(|letter| format!("many{}", char::from(letter)))
        .collect();
    for (number, name) in names.iter().enumerate() {
        stage.add_module(&format!("{:03}-{name}", number + 1));
    }
    let flags: Vec<String> = names.iter().map(|name| format!("{name}Enabled: true\n")).collect();
    stage.write("modules/values.yaml", &flags.concat());
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();

    let audit = stage.namespace().plane().audit();
    let mark = audit.mark().unwrap();
    let operator = stage.start();
    operator.wait_for(&[CONVERGED]);
    operator.stop();
    let requests = audit.since(mark).unwrap().of(User::Operator);
    let requests = requests.within(stage.namespace().name());
    let requests = requests.that(|record| record.resource != "leases");
    assert!(requests.clone().mutating().is_empty(), "{requests}");
    assert!(requests.len() <= FEW, "{}:\n{requests}", requests.len());
}
