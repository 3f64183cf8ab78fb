//! A writer: it changes files in a folder of its own, one at a time, and fsyncs each change.

use crate::history::{Doubt, History, PAGE_BYTES, Page, contents};
use ropewalk_interop::dice::Dice;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The longest file.
const PAGES_MAX: usize = 128;

/// The most files in a folder; from then on, more are removed than made.
const FILES_MAX: usize = 60;

/// A writer and what it has done.
pub struct Writer {
    folder: PathBuf,
    dice: Dice,
    names: u64,
    pub history: History,
    /// The error that stopped it.
    pub error: Option<io::Error>,
}

impl Writer {
    pub fn new(folder: &Path, seed: u64) -> Self {
        let dice = Dice::new(seed);
        Self { folder: folder.to_owned(), dice, names: 0, history: History::default(), error: None }
    }

    /// Works until it is told to stop, or something fails.
    pub fn work(mut self, stop: &AtomicBool) -> Self {
        while !stop.load(Ordering::Relaxed) {
            if let Err(error) = self.step() {
                self.error = Some(error);
                break;
            }
        }
        self
    }

    fn step(&mut self) -> io::Result<()> {
        let names: Vec<_> = self.history.files.keys().cloned().collect();
        let Some(name) = names.get(self.dice.below(names.len())) else { return self.create() };
        match self.dice.below(10) {
            0..=4 if names.len() < FILES_MAX => self.create(),
            0..=6 => self.overwrite(name),
            7 => self.rename(name),
            8 => self.scribble(),
            _ => self.remove(name),
        }
    }

    fn create(&mut self) -> io::Result<()> {
        let name = self.new_name();
        let number = 1 + self.dice.below(PAGES_MAX);
        let pages = self.pages(number);
        self.history.doubt = Some(Doubt::Create);
        let mut file = File::create(self.folder.join(&name))?;
        file.write_all(&bytes(&pages))?;
        file.sync_all()?;
        self.sync_folder()?;
        self.history.files.insert(name, pages);
        self.history.doubt = None;
        Ok(())
    }

    fn overwrite(&mut self, name: &str) -> io::Result<()> {
        let length = self.history.files[name].len();
        let first = self.dice.below(length);
        let number = 1 + self.dice.below(length - first);
        let pages = self.pages(number);
        self.history.doubt = Some(Doubt::Overwrite { name: name.to_owned(), first, pages: pages.clone() });
        let file = File::options().write(true).open(self.folder.join(name))?;
        file.write_all_at(&bytes(&pages), (first * PAGE_BYTES) as u64)?;
        file.sync_data()?;
        if let Some(old) = self.history.files.get_mut(name) {
            old[first..first + pages.len()].copy_from_slice(&pages);
        }
        self.history.doubt = None;
        Ok(())
    }

    fn rename(&mut self, from: &str) -> io::Result<()> {
        let to = self.new_name();
        self.history.doubt = Some(Doubt::Rename { from: from.to_owned(), to: to.clone() });
        fs::rename(self.folder.join(from), self.folder.join(&to))?;
        self.sync_folder()?;
        if let Some(pages) = self.history.files.remove(from) {
            self.history.files.insert(to, pages);
        }
        self.history.doubt = None;
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.history.doubt = Some(Doubt::Remove(name.to_owned()));
        fs::remove_file(self.folder.join(name))?;
        self.sync_folder()?;
        self.history.files.remove(name);
        self.history.doubt = None;
        Ok(())
    }

    /// Writes what nobody asks to keep, so that there is always something in the caches.
    fn scribble(&mut self) -> io::Result<()> {
        let number = 1 + self.dice.below(PAGES_MAX);
        let pages = self.pages(number);
        fs::write(self.folder.join("scribble"), bytes(&pages))
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.folder)?.sync_all()
    }

    fn new_name(&mut self) -> String {
        self.names += 1;
        format!("file-{}", self.names)
    }

    fn pages(&mut self, number: usize) -> Vec<Page> {
        (0..number).map(|_| self.dice.number()).collect()
    }
}

fn bytes(pages: &[Page]) -> Vec<u8> {
    pages.iter().flat_map(|page| contents(*page)).collect()
}
