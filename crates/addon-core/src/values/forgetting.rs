//! The values that an owner loses when its module is removed, so that a later life of the module does not see them.
//!
//! Must never touch values of files or of the `ConfigMap`.

use std::sync::Arc;

use names::Owner;
use serde_json::{Map, Value};

use super::{Attempt, Layers, Store};

impl Store {
    /// Forgets an empty section of the `ConfigMap`, which only tells that the section once existed.
    pub fn forget_empty_config(&mut self, owner: &Owner) {
        if let Some(layers) = self.owners.get_mut(owner) {
            let is_empty = |section: &mut Arc<Value>| section.as_object().is_some_and(Map::is_empty);
            if layers.config.take_if(is_empty).is_some() {
                layers.bump();
            }
        }
    }

    /// Forgets the patches of an owner's hooks. True if the effective values changed.
    pub fn forget_patches(&mut self, owner: &Owner) -> bool {
        let forget = |layers: &mut Layers, _: &str| {
            layers.patches = Arc::default();
            Ok(())
        };
        self.set_layer(owner, Attempt::Files, forget)
            .expect("the layers below patches are sections that merge")
    }
}
