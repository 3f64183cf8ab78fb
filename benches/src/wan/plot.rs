//! The plot of a series of copies: how much of each path's rate the programs reach.

use crate::summary::{Cell, Summary};
use observe::report::{Axis, Figure, Point, Series, Style, Unit};

/// The programs drawn, and their names in the legend.
const DRAWN: [(&str, &str); 5] = [
    ("ropewalk", "ropewalk copy"),
    ("nbdcopy, 16 connections", "nbdcopy, 16 connections"),
    ("rsync", "rsync"),
    ("QEMU to tgt", "QEMU"),
    ("16 plain streams", "16 plain TCP streams"),
];
const CONGESTION_CONTROL: &str = "cubic";
const DIRECTION: &str = "to the server";

/// A bar for each drawn program on each path, with the spread of its runs.
pub fn figure(summary: &Summary) -> Figure {
    let paths = summary.values(|cell| &cell.path);
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
            let cell = summary.cells.iter().find(|cell| {
                cell.copy == *copy
                    && cell.path == *path
                    && cell.congestion_control == CONGESTION_CONTROL
                    && cell.direction == DIRECTION
            })?;
            point(place.into(), cell)
        });
        figure.series(Series::new(*name, Style::Bars, points))
    })
}

fn point(x: f64, cell: &Cell) -> Option<Point> {
    let rate = cell.rate?;
    let point = Point::new(x, rate.median / cell.link);
    Some(if cell.valid_runs > 1 { point.between(rate.min / cell.link, rate.max / cell.link) } else { point })
}
