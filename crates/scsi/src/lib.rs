//! A SCSI disk: CDBs in, block operations and status out.

#![forbid(unsafe_code)]
