//! The chapter about a module that comes from a registry by a tag. The tag moves to a good version, and then to a bad
//! one.

use std::time::Instant;

use anyhow::{Context, bail};
use testbed::plane::User;

use super::Tour;
use crate::narrator::{Stop, check, seconds};
use crate::stage::File;

const FILES: [File; 3] = [
    File {
        path: "shop/Chart.yaml",
        text: "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    },
    File {
        path: "shop/values.yaml",
        text: "shop:\n  hours: 9 to 17\n",
    },
    File {
        path: "shop/templates/sign.yaml",
        text: r"apiVersion: v1
kind: ConfigMap
metadata:
  name: shop-sign
data:
  text: Open from {{ .Values.shop.hours }}
",
    },
];

/// The edits of the files by which each version differs from the one before.
const GOOD: &str = "sed --in-place 's/17/19/' shop/values.yaml";
const BAD: &str = "sed --in-place 's/shop-sign/Shop_Sign/' shop/templates/sign.yaml";

const STATUS: &str = "addon-operator module source status shop";
/// The line of the status about the version that would replace the one in use, if that one failed.
const ON_TRIAL: &str = "  good: ";

const CHECK: &str = "addon-operator module source check shop";

/// A version is a good one only once its module is healthy, and only a good one returns.
const WAIT: &str = "addon-operator module wait shop";

impl Tour<'_> {
    /// Takes a module from a registry, and lets its tag move twice.
    pub(super) fn follow_a_tag(&mut self) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.chapter("9  A module from a registry");
        narrator.say("shop is a module with one object, a sign. The operator has no directory with its files: they");
        narrator.say("are pushed to a registry, and the ConfigMap names their repository and the tag to follow.");
        self.stage.plane().open_registry()?;
        self.put(&FILES)?;
        self.show("cat shop/values.yaml shop/templates/sign.yaml")?;
        let first = self.push_shop()?;
        let before = self.releases()?;
        let edited = self.patch(&format!(
            r#"{{"moduleSources": "shop: {{repository: {}/modules/shop, version: stable}}"}}"#,
            self.registry()?
        ))?;
        let revision = self.wait_for_revision("shop", &before)?;
        self.wait_for_sign("Open from 9 to 17")?;
        let after = seconds(edited.elapsed());
        self.check_others(&before, "shop")?;
        narrator.ok(format_args!(
            "shop is at revision {revision}, {after} after the edit: \"Open from 9 to 17\"; no other release is touched"
        ));
        self.type_in(WAIT)?;
        let second = self.move_tag_to_good(&first)?;
        self.move_tag_to_bad(&second)
    }

    /// Shows how the release follows the tag. Returns the digest of the new version.
    fn move_tag_to_good(&self, first: &str) -> anyhow::Result<String> {
        let narrator = self.narrator;
        narrator.say("The shop stays open longer. The operator asks the registry once a minute, or when told to.");
        self.type_in(GOOD)?;
        let second = self.push_shop()?;
        check("another version has another digest", second != first, || second.clone())?;
        let (before, pushed) = (self.releases()?, Instant::now());
        self.type_in(CHECK)?;
        let revision = self.wait_for_revision("shop", &before)?;
        self.wait_for_sign("Open from 9 to 19")?;
        let after = seconds(pushed.elapsed());
        self.check_others(&before, "shop")?;
        narrator.ok(format_args!(
            "shop is at revision {revision}, {after} after the push: \"Open from 9 to 19\"; no other release is touched"
        ));
        self.look(&[&second])?;
        Ok(second)
    }

    /// Shows how a version that cannot be installed gives way to the one before.
    fn move_tag_to_bad(&self, good: &str) -> anyhow::Result<()> {
        let narrator = self.narrator;
        narrator.say("The next version gives the sign a name that the API server refuses, which only a trial shows.");
        narrator.say("After its third failure in a row the version before returns.");
        self.type_in(BAD)?;
        let bad = self.push_shop()?;
        let (mark, before, pushed) = (self.mark()?, self.releases()?, Instant::now());
        self.type_in(CHECK)?;
        let revision = self.wait_for_revision("shop", &before)?;
        self.wait_for_sign("Open from 9 to 19")?;
        let after = seconds(pushed.elapsed());
        let asked = self.stage.plane().audit().since(mark)?.of(User::Operator).mutating();
        let refused = asked.that(|record| record.resource == "configmaps" && record.code == 422);
        let times = refused.len();
        check("the API server has refused the new sign", times > 0, || {
            "the audit log has no such refusal".to_owned()
        })?;
        self.check_others(&before, "shop")?;
        narrator.ok(format_args!(
            "the API server refused the bad package {times} times; {after} after its push the version before is back, at revision {revision}"
        ));
        self.look(&[good, &format!("failed:    {bad}")])
    }

    /// Shows the status of the source as soon as it contains these words, and no version is on trial.
    fn look(&self, words: &[&str]) -> anyhow::Result<()> {
        self.narrator.typed(STATUS);
        let status = self.wait("the status says so", || match self.shell.hear(STATUS, words)? {
            status if status.contains(ON_TRIAL) => bail!(status),
            status => Ok(status),
        })?;
        self.narrator.say(status);
        Ok(())
    }

    /// Pushes the files under the tag that is followed. Returns their digest.
    fn push_shop(&self) -> anyhow::Result<String> {
        let push = format!(
            "addon-operator module push shop {}/modules/shop:stable",
            self.registry()?
        );
        let text = self.show(&push)?;
        let (_, digest) = text.split_once('@').context("a pushed module has a digest")?;
        Ok(digest.to_owned())
    }

    fn wait_for_sign(&self, text: &str) -> Result<(), Stop> {
        self.wait(&format!("the shop's sign says \"{text}\""), || {
            let sign = self.stage.namespace().object("configmap", "shop-sign")?;
            let sign = sign.unwrap_or_default();
            match sign["data"]["text"].as_str() {
                Some(now) if now == text => Ok(()),
                now => bail!("it says {now:?}"),
            }
        })
    }
}
