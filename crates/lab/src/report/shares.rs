//! Measurements as shares of another.

use observe::report::{Cell, Column, Figure, Point, Series, Style, Table, Unit};

/// The table of a figure, with each measurement as a share of the one at `base` and of every theory.
pub(super) fn table(figure: &Figure, base: f64, base_name: &str) -> Table {
    let mut table = figure.table_or_points();
    let (theories, measured): (Vec<&Series>, Vec<&Series>) =
        figure.series.iter().partition(|series| series.style == Style::Dashed);
    let xs = places(&measured);
    for series in &measured {
        let name = |of: &str| match measured.len() {
            1 => format!("of {of}"),
            _ => format!("{}, of {of}", series.name),
        };
        let of_base = xs.iter().map(|x| share(at(series, *x), at(series, base)));
        add(&mut table, name(base_name), of_base);
        for theory in &theories {
            let of_theory = xs.iter().map(|x| share(at(series, *x), at(theory, *x)));
            add(&mut table, name(&theory.name), of_theory);
        }
    }
    table
}

/// The measured positions, ascending: each has a row.
fn places(measured: &[&Series]) -> Vec<f64> {
    let mut xs: Vec<f64> =
        measured.iter().flat_map(|series| series.points.iter().map(|point| point.x)).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    xs
}

fn at(series: &Series, x: f64) -> Option<&Point> {
    series.points.iter().find(|point| point.x == x)
}

fn share(measured: Option<&Point>, of: Option<&Point>) -> Cell {
    let (Some(measured), Some(of)) = (measured, of) else { return Cell::Empty };
    Cell::number(Some(measured.y / of.y), measured.invalid.is_none() && of.invalid.is_none())
}

fn add(table: &mut Table, label: String, cells: impl Iterator<Item = Cell>) {
    table.columns.push(Column { label, unit: Unit::Share });
    for (row, cell) in table.rows.iter_mut().zip(cells) {
        row.cells.push(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::report::Axis;

    #[test]
    fn a_number_is_told_as_a_share_of_the_base_and_of_theory() {
        let names = ["one", "two", "three"].map(str::to_owned).to_vec();
        let bar = |x: u8, y| Point::new(x.into(), y);
        let measured = [bar(0, 10.0), bar(1, 40.0), bar(2, 5.0).invalid("late")];
        let link = (0..3).map(|x| bar(x, 80.0));
        let figure = Figure::new("t", Axis::named("who", names), Axis::new("rate", Unit::BitsPerSecond))
            .series(Series::new("measured", Style::Bars, measured))
            .series(Series::new("link", Style::Dashed, link));
        let table = table(&figure, 0.0, "one");
        let labels: Vec<_> = table.columns.iter().map(|column| column.label.as_str()).collect();
        assert_eq!(labels, ["who", "measured", "link", "of one", "of link"]);
        assert_eq!(table.rows[1].cells[3..], [4.0.into(), 0.5.into()]);
        assert_eq!(table.rows[2].cells[3..], [0.5, 0.0625].map(|invalid| Cell::Invalid { invalid }));
    }
}
