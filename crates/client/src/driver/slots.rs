//! Tables with a kind of number each, so that an operation's number never finds a request.

use super::operation::Operation;
use super::path::Path;
use super::request::Request;
use crate::path_id::PathId;
use crate::report::PathState;
use slab::Slab;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Index, IndexMut};

/// Declares a number that a table gives out.
macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(super) struct $name(usize);

        impl From<usize> for $name {
            fn from(slot: usize) -> Self {
                Self(slot)
            }
        }

        impl From<$name> for usize {
            fn from(number: $name) -> Self {
                number.0
            }
        }
    )+};
}

numbers! {
    /// An outstanding operation. Used again for another once that has ended.
    OperationId,
    /// One command of an operation. Used again for another once that has ended.
    RequestId,
}

/// Values by numbers of the kind `K`.
#[derive(Debug)]
pub(super) struct Slots<K, V> {
    values: Slab<V>,
    kind: PhantomData<fn(K) -> K>,
}

pub(super) type Operations = Slots<OperationId, Operation>;
pub(super) type Requests = Slots<RequestId, Request>;

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        Self { values: Slab::new(), kind: PhantomData }
    }
}

impl<K: From<usize> + Into<usize>, V> Slots<K, V> {
    pub fn insert(&mut self, value: V) -> K {
        self.values.insert(value).into()
    }

    pub fn get(&self, key: K) -> Option<&V> {
        self.values.get(key.into())
    }

    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.values.get_mut(key.into())
    }

    pub fn remove(&mut self, key: K) -> Option<V> {
        self.values.try_remove(key.into())
    }

    pub fn contains(&self, key: K) -> bool {
        self.values.contains(key.into())
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<K: Into<usize>, V> Index<K> for Slots<K, V> {
    type Output = V;

    fn index(&self, key: K) -> &V {
        &self.values[key.into()]
    }
}

impl<K: Into<usize>, V> IndexMut<K> for Slots<K, V> {
    fn index_mut(&mut self, key: K) -> &mut V {
        &mut self.values[key.into()]
    }
}

/// All paths, each at the place of its number. None is ever removed.
#[derive(Default)]
pub(crate) struct Paths {
    paths: Vec<Path>,
}

impl Paths {
    /// Adds the path that `make` returns for its number.
    pub fn add(&mut self, make: impl FnOnce(PathId) -> Path) -> PathId {
        let id = PathId(u32::try_from(self.paths.len()).unwrap_or(u32::MAX));
        self.paths.push(make(id));
        id
    }

    /// The numbers of all paths, for changing the paths meanwhile.
    pub fn ids(&self) -> impl Iterator<Item = PathId> + use<> {
        (0..u32::try_from(self.paths.len()).unwrap_or(u32::MAX)).map(PathId)
    }

    /// Those that have a session, or may have one again.
    pub fn living(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().filter(|path| path.state != PathState::Gone)
    }

    pub fn get(&self, id: PathId) -> Option<&Path> {
        self.paths.get(id.0 as usize)
    }

    pub fn get_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths.get_mut(id.0 as usize)
    }
}

impl Deref for Paths {
    type Target = [Path];

    fn deref(&self) -> &[Path] {
        &self.paths
    }
}

impl DerefMut for Paths {
    fn deref_mut(&mut self) -> &mut [Path] {
        &mut self.paths
    }
}

impl Index<PathId> for Paths {
    type Output = Path;

    fn index(&self, id: PathId) -> &Path {
        &self.paths[id.0 as usize]
    }
}

impl IndexMut<PathId> for Paths {
    fn index_mut(&mut self, id: PathId) -> &mut Path {
        &mut self.paths[id.0 as usize]
    }
}
