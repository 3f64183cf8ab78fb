//! Programs that stay in the kernel.

use crate::error::missing;
use crate::{BpfError, Compiled};
use libbpf_rs::{MapCore as _, MapHandle, MapType, ObjectBuilder, OpenObject, libbpf_sys};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// A folder of a BPF file system: in it, the links of struct_ops by their names, and a folder `maps`. A program stays
/// while its link has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    folder: PathBuf,
}

const MAPS: &str = "maps";

impl Pinned {
    /// Those of this folder, which need not exist.
    #[must_use]
    pub fn of(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Loads a file with one struct_ops, and gives that this name. Maps with the names of `shared` are those that are
    /// there already, if they are.
    ///
    /// # Errors
    /// If the kernel refuses the programs; if the struct_ops is there already, or one of the same name by somebody else.
    pub fn load(&self, name: &str, compiled: &Compiled, shared: &[&str]) -> Result<(), BpfError> {
        libbpf_rs::set_print(None);
        for folder in [self.folder.clone(), self.maps()] {
            fs::create_dir_all(&folder)?;
            // Whatever the umask is.
            fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
        }
        let loaded = self.load_into_folder(name, compiled, shared);
        if loaded.is_err() {
            // What the kernel says of the programs is worth more than what it says of the files.
            let _ = self.tidy_up();
        }
        loaded
    }

    fn load_into_folder(&self, name: &str, compiled: &Compiled, shared: &[&str]) -> Result<(), BpfError> {
        let mut open = ObjectBuilder::default().open_memory(&compiled.0)?;
        self.share(&mut open, shared)?;
        let mut object = open.load()?;
        let mut maps = object.maps_mut();
        let mut operations =
            maps.find(|map| map.map_type() == MapType::StructOps).ok_or_else(|| missing(name))?;
        operations.attach_struct_ops()?.pin(self.folder.join(name))?;
        Ok(())
    }

    fn share(&self, open: &mut OpenObject, shared: &[&str]) -> Result<(), BpfError> {
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if shared.contains(&name.as_str()) {
                map.set_pin_path(self.maps().join(name))?;
            }
        }
        Ok(())
    }

    /// The names of those that are loaded.
    ///
    /// # Errors
    /// If the folder cannot be read. One that does not exist is empty.
    pub fn loaded(&self) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
        let mut names: Vec<_> = names.collect::<io::Result<_>>()?;
        names.retain(|name| name != MAPS);
        names.sort();
        Ok(names)
    }

    /// Removes a struct_ops from those that can be chosen. Who uses it keeps it. With the last, the maps go.
    ///
    /// # Errors
    /// If it is not there, or the file system does not allow it.
    pub fn unload(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.folder.join(name))?;
        self.tidy_up()
    }

    /// Removes maps that nothing uses.
    fn tidy_up(&self) -> io::Result<()> {
        if self.loaded()?.is_empty() {
            fs::remove_dir_all(self.maps())?;
            fs::remove_dir(&self.folder)?;
        }
        Ok(())
    }

    /// The file that names a shared map.
    #[must_use]
    pub fn map_file(&self, name: &str) -> PathBuf {
        self.maps().join(name)
    }

    /// A shared map, to read and to write.
    ///
    /// # Errors
    /// If it is not there, or its file does not allow it.
    pub fn map(&self, name: &str) -> Result<MapHandle, BpfError> {
        Ok(MapHandle::from_pinned_path(self.map_file(name))?)
    }

    /// A shared map, to read only.
    ///
    /// # Errors
    /// If it is not there, or its file does not allow it.
    pub fn map_to_read(&self, name: &str) -> Result<MapHandle, BpfError> {
        Ok(MapHandle::from_pinned_path_with_file_flags(self.map_file(name), libbpf_sys::BPF_F_RDONLY)?)
    }

    fn maps(&self) -> PathBuf {
        self.folder.join(MAPS)
    }
}
