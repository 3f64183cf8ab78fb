//! What a writer has made durable, and what it was doing when it stopped.

use ropewalk_interop::dice::Dice;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

pub const PAGE_BYTES: usize = 4096;

/// A disk writes at least so many bytes whole.
const SECTOR_BYTES: usize = 512;

/// A page's contents, by a number that no other page has.
pub type Page = u64;

/// All that a writer knows of its folder.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The files that are durable, with their pages.
    pub files: BTreeMap<String, Vec<Page>>,
    /// What was begun and is not known to be durable.
    pub doubt: Option<Doubt>,
}

/// A change of which any part may have happened.
#[derive(Clone, Debug)]
pub enum Doubt {
    /// A file that is not among the durable ones may be there, with anything in it.
    Create,
    /// Each sector of the pages from `first` on is old or new.
    Overwrite { name: String, first: usize, pages: Vec<Page> },
    /// The file has one of its names.
    Rename { from: String, to: String },
    /// The file may be gone.
    Remove(String),
}

/// How much was compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checked {
    pub files: u64,
    pub pages: u64,
}

impl History {
    /// Compares a folder with the history; what is wrong goes to `complaints`.
    pub fn check(&self, folder: &Path, checked: &mut Checked, complaints: &mut Vec<String>) {
        for (name, pages) in &self.files {
            checked.files += 1;
            checked.pages += pages.len() as u64;
            if let Err(complaint) = self.check_file(folder, name, pages) {
                complaints.push(format!("{}: {complaint}", folder.join(name).display()));
            }
        }
    }

    fn check_file(&self, folder: &Path, name: &str, pages: &[Page]) -> Result<(), String> {
        let found = fs::read(folder.join(name));
        match &self.doubt {
            Some(Doubt::Remove(removed)) if removed == name => match found {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
                found => compare(&read(found)?, pages, None),
            },
            Some(Doubt::Rename { from, to }) if from == name => match found {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    compare(&read(fs::read(folder.join(to)))?, pages, None)
                }
                found => compare(&read(found)?, pages, None),
            },
            Some(Doubt::Overwrite { name: overwritten, first, pages: newer }) if overwritten == name => {
                compare(&read(found)?, pages, Some((*first, newer)))
            }
            _ => compare(&read(found)?, pages, None),
        }
    }
}

fn read(found: io::Result<Vec<u8>>) -> Result<Vec<u8>, String> {
    found.map_err(|error| format!("it was durable, but cannot be read: {error}"))
}

/// Compares contents with pages. `newer` are pages that may have taken the place of those from a first one on.
fn compare(found: &[u8], pages: &[Page], newer: Option<(usize, &Vec<Page>)>) -> Result<(), String> {
    if found.len() != pages.len() * PAGE_BYTES {
        return Err(format!("it has {} bytes instead of {}", found.len(), pages.len() * PAGE_BYTES));
    }
    for (index, (found, page)) in found.chunks(PAGE_BYTES).zip(pages).enumerate() {
        let old = contents(*page);
        let new =
            newer.and_then(|(first, newer)| newer.get(index.checked_sub(first)?)).map(|page| contents(*page));
        let sectors = found.chunks(SECTOR_BYTES).zip(old.chunks(SECTOR_BYTES)).enumerate();
        for (sector, (found, old)) in sectors {
            let is_new = || {
                let new = new.as_deref()?.chunks(SECTOR_BYTES).nth(sector)?;
                Some(found == new)
            };
            if found != old && is_new() != Some(true) {
                return Err(format!("page {index} is not what was written"));
            }
        }
    }
    Ok(())
}

/// The bytes of a page.
pub fn contents(page: Page) -> Vec<u8> {
    let mut dice = Dice::new(page);
    (0..PAGE_BYTES / 8).flat_map(|_| dice.number().to_le_bytes()).collect()
}
