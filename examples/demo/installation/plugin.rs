//! The part of the installation that asks the operator as a plugin of kubectl. Must never change anything.

use anyhow::Context as _;

use super::Installation;
use crate::narrator::check;

impl Installation<'_> {
    /// Shows a module, its revisions, and the last edit.
    pub(super) fn look_with_kubectl(&self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator
            .say("Under the name kubectl-addons the program is a plugin of kubectl, and asks the operator in its pod.");
        narrator.say(self.type_in("kubectl addons module tree guestbook")?);
        narrator.say(self.type_in("kubectl addons module history guestbook")?);
        let releases = self.site.releases()?;
        let last = releases.get("guestbook").context("guestbook has no release")?.revision;
        let diff = format!("kubectl addons module diff guestbook {} {last}", last - 1);
        let told = self.type_in(&diff)?;
        check("the difference tells the new title", told.contains("Visitors"), || {
            told.clone()
        })?;
        narrator.say(told);
        narrator.ok("what the edit has changed is known from helm's records, field by field");
        Ok(())
    }
}
