//! The settings for the order of modules, and for the order of the sources that enable them.

use addon_core::module::enabling::Extenders;

use super::Order;
use super::words::{Checked, Words};

/// The highest order number in a directory's name.
const ORDER_MAX: u32 = i32::MAX.unsigned_abs();

impl Words<'_> {
    pub(super) fn unnumbered_order(&self) -> Checked<u32> {
        let variables = [
            "ADDON_OPERATOR_UNNUMBERED_MODULES_ORDER",
            "UNNUMBERED_MODULES_ORDER",
            "UNNUMBERED_MODULE_ORDER",
        ];
        let said = self.said(
            "--unnumbered-modules-order",
            self.args.unnumbered_modules_order.as_ref(),
            &variables,
        )?;
        let read = |text: &str| text.parse().ok().filter(|order| *order <= ORDER_MAX);
        Ok(said.parsed("a whole number from 0 to 2147483647", read)?.unwrap_or(1))
    }

    pub(super) fn extenders(&self) -> Checked<Extenders> {
        let said = self.said(
            "--applied-module-extenders",
            self.args.applied_module_extenders.as_ref(),
            &["ADDON_OPERATOR_APPLIED_MODULE_EXTENDERS"],
        )?;
        let allowed = "names with commas and without spaces between them, each once: Static, DynamicallyEnabled, KubeConfig, ScriptEnabled";
        Ok(said.parsed(allowed, Extenders::parse)?.unwrap_or_default())
    }

    pub(super) fn order(&self) -> Checked<Order> {
        let said = self.said(
            "--strict-order",
            self.args.strict_order.as_ref(),
            &["ADDON_OPERATOR_STRICT_ORDER"],
        )?;
        Ok(if said.flag()? { Order::Strict } else { Order::Relaxed })
    }
}
