//! The first chapter: a module of one's own is drafted, and its hook is tested. It needs no cluster, so it comes while the programs of
//! the control plane may still be built.

use std::env;

use anyhow::Context;

use crate::life::Program;
use crate::narrator::{Narrator, check};
use crate::shell::{Said, Shell};

/// The comparison that the chapter breaks in the drafted hook.
const FALSE_COUNT: &str = "sed --in-place 's/length/length + 1/' modules/700-greeting/hooks/count-nodes.sh";

/// The cases of the hook. The cases of the chart would need helm.
const TEST: &str = "addon-operator module test modules/700-greeting --case node";

pub(crate) fn show(narrator: &Narrator, program: &Program) -> anyhow::Result<()> {
    narrator.chapter("0  Draft a module, and test its hook without a cluster");
    let folder = tempfile::tempdir()?;
    let usual = env::var_os("PATH").context("there is no PATH")?;
    let shell = Shell::without_cluster(folder.path(), &usual, &program.path)?;
    let drafted = shell.type_in(narrator, "addon-operator module new greeting --order 700")?;
    let files = drafted.lines().filter(|line| line.starts_with("modules/")).count();
    narrator.ok(format_args!(
        "{files} files: a chart, a schema, a hook in bash and cases for both"
    ));
    let passed = shell.type_in(narrator, TEST)?;
    narrator.say(
        passed
            .lines()
            .filter(|line| line.starts_with("ok "))
            .collect::<Vec<_>>()
            .join("\n"),
    );
    narrator.ok("the hook counts nodes as its cases say");
    narrator.say("Now the hook counts one node too many.");
    shell.type_in(narrator, FALSE_COUNT)?;
    narrator.typed(TEST);
    let Said { is_success, text } = shell.run(TEST)?;
    check(
        "the cases find the false count",
        !is_success && text.contains("nodes"),
        || text.clone(),
    )?;
    narrator.say(&text);
    narrator.ok("both cases find the mistake");
    Ok(())
}
