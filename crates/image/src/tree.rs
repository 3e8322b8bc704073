//! A file system in memory: the contents of the image before they are written into layers.
//!
//! Packages of Debian still contain `/bin/sh`, while the image has `/usr/bin/sh` and a link `/bin`. So a new entry is
//! put where the links in its path lead, as on a disk. A tree must never hold two entries at one place.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use thiserror::Error;

use crate::place::{ImagePath, PlaceError};

/// The bytes of a file, or the path from which they are read when a layer is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Bytes(Arc<[u8]>),
    OnDisk(PathBuf),
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

/// An entry of the tree. Everything belongs to root, so that the user of a container owns nothing in the image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    Folder { mode: u32 },
    File { mode: u32, content: Content },
    Link { target: String },
}

impl Node {
    /// A folder that every user may read.
    pub const FOLDER: Self = Self::Folder { mode: 0o755 };

    /// A file that every user may read.
    pub fn file(content: impl Into<Content>) -> Self {
        Self::File {
            mode: 0o644,
            content: content.into(),
        }
    }

    /// A file that every user may read and execute.
    pub fn program(content: impl Into<Content>) -> Self {
        Self::File {
            mode: 0o755,
            content: content.into(),
        }
    }
}

/// The effect of a new file on an existing one at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The second file is an error.
    Refused,
    /// The second file replaces the first.
    Replaced,
}

#[derive(Debug, Error, PartialEq, Eq)]
pub enum TreeError {
    #[error("{0} is there already, and it is something else")]
    Taken(ImagePath),
    #[error("{0} is no folder, and something was to be put into it")]
    NoFolder(ImagePath),
    #[error("links lead in a circle at {0}")]
    Circle(ImagePath),
    #[error("a link on the way to {0} leads nowhere that an image has")]
    Astray(ImagePath, #[source] PlaceError),
}

/// A path with more links than this is taken for a cycle; Linux has the same limit.
const LINKS: usize = 40;

/// A whole file system.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    nodes: BTreeMap<ImagePath, Node>,
}

impl Tree {
    /// Adds an entry, and the missing folders in its path.
    pub fn put(&mut self, place: &ImagePath, node: Node, taken: Taken) -> Result<(), TreeError> {
        let place = if matches!(node, Node::Folder { .. }) {
            self.resolve(place)?
        } else {
            self.resolve_parent(place)?
        };
        if place == ImagePath::root() {
            return Ok(());
        }
        self.make_way(&place)?;
        match self.nodes.get(&place) {
            None => drop(self.nodes.insert(place, node)),
            // The first definition of a folder determines its mode.
            Some(Node::Folder { .. }) if matches!(node, Node::Folder { .. }) => {}
            Some(found) if *found == node => {}
            Some(Node::File { .. } | Node::Link { .. }) if taken == Taken::Replaced => {
                drop(self.nodes.insert(place, node));
            }
            Some(_) => return Err(TreeError::Taken(place)),
        }
        Ok(())
    }

    /// The entry at a place. Links in the path are followed, a link at its end is not.
    pub fn get(&self, place: &ImagePath) -> Option<&Node> {
        self.nodes.get(&self.resolve_parent(place).ok()?)
    }

    /// All entries, each folder before its contents.
    pub fn nodes(&self) -> impl Iterator<Item = (&ImagePath, &Node)> {
        self.nodes.iter()
    }

    /// The entries that, laid over `lower`, give this tree: new and changed ones, and the folders that contain them.
    #[must_use]
    pub fn over(&self, lower: &Self) -> Self {
        let mut nodes = BTreeMap::new();
        let news = self
            .nodes
            .iter()
            .filter(|(place, node)| lower.nodes.get(place) != Some(*node));
        for (place, node) in news {
            nodes.insert(place.clone(), node.clone());
            let mut way = place.parent();
            while let Some(folder) = way {
                if let Some(node) = self.nodes.get(&folder) {
                    nodes.insert(folder.clone(), node.clone());
                }
                way = folder.parent();
            }
        }
        Self { nodes }
    }

    fn make_way(&mut self, place: &ImagePath) -> Result<(), TreeError> {
        let mut missing = Vec::new();
        let mut way = place.parent();
        while let Some(folder) = way.filter(|folder| *folder != ImagePath::root()) {
            match self.nodes.get(&folder) {
                None => missing.push(folder.clone()),
                Some(Node::Folder { .. }) => break,
                Some(Node::File { .. } | Node::Link { .. }) => return Err(TreeError::NoFolder(folder)),
            }
            way = folder.parent();
        }
        self.nodes
            .extend(missing.into_iter().map(|folder| (folder, Node::FOLDER)));
        Ok(())
    }

    /// The place after following all links, including one at the end.
    fn resolve(&self, place: &ImagePath) -> Result<ImagePath, TreeError> {
        let mut todo: Vec<String> = place.names().map(str::to_owned).collect();
        todo.reverse();
        let mut reached = ImagePath::root();
        let mut links = 0;
        while let Some(name) = todo.pop() {
            if name == ".." {
                reached = reached.parent().unwrap_or_default();
                continue;
            }
            let next = reached
                .join(&name)
                .map_err(|source| TreeError::Astray(place.clone(), source))?;
            let Some(Node::Link { target }) = self.nodes.get(&next) else {
                reached = next;
                continue;
            };
            links += 1;
            if links > LINKS {
                return Err(TreeError::Circle(place.clone()));
            }
            if target.starts_with('/') {
                reached = ImagePath::root();
            }
            todo.extend(
                target
                    .split('/')
                    .rev()
                    .filter(|name| !matches!(*name, "" | "."))
                    .map(str::to_owned),
            );
        }
        Ok(reached)
    }

    fn resolve_parent(&self, place: &ImagePath) -> Result<ImagePath, TreeError> {
        let (Some(parent), Some(name)) = (place.parent(), place.names().last()) else {
            return Ok(ImagePath::root());
        };
        let parent = self.resolve(&parent)?;
        parent
            .join(name)
            .map_err(|source| TreeError::Astray(place.clone(), source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> ImagePath {
        ImagePath::absolute(text).unwrap()
    }

    fn link(target: &str) -> Node {
        Node::Link {
            target: target.to_owned(),
        }
    }

    fn file(text: &str) -> Node {
        Node::file(text.as_bytes().to_vec())
    }

    fn tree(nodes: &[(&str, Node)]) -> Tree {
        let mut tree = Tree::default();
        for (at, node) in nodes {
            tree.put(&place(at), node.clone(), Taken::Refused).unwrap();
        }
        tree
    }

    fn places(tree: &Tree) -> Vec<String> {
        tree.nodes().map(|(place, _)| place.to_string()).collect()
    }

    #[test]
    fn links_on_the_way_are_followed() {
        let tree = tree(&[
            ("/bin", link("usr/bin")),
            ("/bin/bash", file("bash")),
            ("/bin/sh", link("bash")),
            ("/a/up", link("../usr/./bin")),
            ("/a/up/jq", file("jq")),
            ("/abs", link("/usr")),
            ("/abs/lib", Node::FOLDER),
        ]);
        let expected = [
            "/a",
            "/a/up",
            "/abs",
            "/bin",
            "/usr",
            "/usr/bin",
            "/usr/bin/bash",
            "/usr/bin/jq",
            "/usr/bin/sh",
            "/usr/lib",
        ];
        assert_eq!(places(&tree), expected);
        assert_eq!(tree.get(&place("/bin/sh")), Some(&link("bash")));
    }

    #[test]
    fn a_folder_where_a_link_leads_is_that_folder() {
        let tree = tree(&[("/bin", link("usr/bin")), ("/bin", Node::FOLDER)]);
        assert_eq!(places(&tree), ["/bin", "/usr", "/usr/bin"]);
    }

    #[test]
    fn two_files_at_one_place_are_refused_unless_the_later_one_shall_win() {
        let mut tree = tree(&[("/a", file("1"))]);
        tree.put(&place("/a"), file("1"), Taken::Refused).unwrap();
        assert_eq!(
            tree.put(&place("/a"), file("2"), Taken::Refused),
            Err(TreeError::Taken(place("/a")))
        );
        tree.put(&place("/a"), file("2"), Taken::Replaced).unwrap();
        assert_eq!(tree.get(&place("/a")), Some(&file("2")));
        assert_eq!(
            tree.put(&place("/a/b"), file("3"), Taken::Replaced),
            Err(TreeError::NoFolder(place("/a")))
        );
        assert_eq!(
            tree.put(&ImagePath::root().join("a").unwrap(), Node::FOLDER, Taken::Refused),
            Err(TreeError::Taken(place("/a")))
        );
    }

    #[test]
    fn a_folder_keeps_the_rights_it_was_first_given() {
        let tree = tree(&[
            ("/tmp", Node::Folder { mode: 0o1777 }),
            ("/tmp", Node::FOLDER),
            ("/tmp/x", file("x")),
        ]);
        assert_eq!(tree.get(&place("/tmp")), Some(&Node::Folder { mode: 0o1777 }));
    }

    #[test]
    fn circles_are_found() {
        let mut tree = tree(&[("/a", link("b")), ("/b", link("a"))]);
        assert_eq!(
            tree.put(&place("/a/x"), file("x"), Taken::Refused),
            Err(TreeError::Circle(place("/a")))
        );
    }

    #[test]
    fn what_is_laid_over_a_tree_is_what_is_new_with_its_folders() {
        let lower = tree(&[
            ("/tmp", Node::Folder { mode: 0o1777 }),
            ("/usr/bin/a", file("a")),
            ("/etc/old", file("old")),
        ]);
        let mut upper = lower.clone();
        upper.put(&place("/tmp/x"), file("x"), Taken::Refused).unwrap();
        upper.put(&place("/etc/old"), file("new"), Taken::Replaced).unwrap();
        let news = upper.over(&lower);
        assert_eq!(places(&news), ["/etc", "/etc/old", "/tmp", "/tmp/x"]);
        assert_eq!(news.get(&place("/tmp")), Some(&Node::Folder { mode: 0o1777 }));
        assert_eq!(places(&upper.over(&upper)), Vec::<String>::new());
    }
}
