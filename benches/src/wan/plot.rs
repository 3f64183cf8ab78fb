//! The plot of a series of copies: how much of each path's rate the programs reach.

use crate::copies::{Copies, Copy};
use observe::report::{Axis, Figure, Point, Series, Style, Unit};

/// The programs drawn, and their names in the legend.
const DRAWN: [(&str, &str); 6] = [
    ("ropewalk", "ropewalk copy"),
    ("nbdcopy, 1 connection", "nbdcopy, 1 connection"),
    ("nbdcopy, 16 connections", "nbdcopy, 16 connections"),
    ("rsync", "rsync"),
    ("QEMU to tgt", "QEMU"),
    ("16 plain streams", "16 plain TCP streams"),
];
const CONGESTION_CONTROL: &str = "cubic";
const DIRECTION: &str = "to the server";

/// A bar for each drawn program on each path, with the spread of its runs.
pub fn figure(copies: &Copies) -> Figure {
    let paths = copies.values(Copy::path);
    // A line should not end between a number and its percent sign.
    let names: Vec<String> = paths.iter().map(|path| path.replace(" %", "%")).collect();
    let title = "Copying a disk image to a server over long paths (CUBIC)";
    let figure = Figure::new(
        title,
        Axis::named("", names),
        Axis::new("share of the link's payload rate", Unit::Share),
    );
    DRAWN.iter().fold(figure, |figure, (copy, name)| {
        let points = (0_u32..).zip(&paths).filter_map(|(place, path)| {
            let copy = copies.at(path, CONGESTION_CONTROL, DIRECTION, copy)?;
            point(place.into(), copy)
        });
        figure.series(Series::new(*name, Style::Bars, points))
    })
}

fn point(x: f64, copy: &Copy) -> Option<Point> {
    let (rate, link) = (copy.throughput()?, copy.cell.link);
    let point = Point::new(x, rate.median / link);
    Some(if copy.cell.valid > 1 { point.between(rate.min / link, rate.max / link) } else { point })
}
