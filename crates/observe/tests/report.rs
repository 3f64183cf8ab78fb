//! Reports as a person opens them.

#![allow(clippy::unwrap_used, reason = "a test says by its failure what went wrong")]

use ropewalk_observe::report::{
    Annotation, Axis, Fact, Figure, Place, Point, Report, Row, Section, Series, Standing, Style, Table, Unit,
    Verdict,
};
use roxmltree::Document;

/// A text that would be markup, the end of a script, or a control sequence anywhere.
const HOSTILE: &str = "</script><!--<img src='https://example.org/\"'>&\u{1b}";

fn figure(name: &str) -> Figure {
    let points =
        [Point::new(0.01, 5e8).between(4e8, 6e8), Point::new(0.02, 3e8).invalid(format!("{name} late"))];
    Figure::new(format!("{name} figure"), Axis::new(format!("{name} x"), Unit::Seconds), rate())
        .caption(format!("{name} caption"))
        .series(Series::new(format!("{name} line"), Style::Line, points.clone()))
        .series(Series::new(format!("{name} steps"), Style::Steps, points.clone()))
        .series(Series::new(format!("{name} points"), Style::Points, points))
}

fn rate() -> Axis {
    Axis::new("rate", Unit::BitsPerSecond)
}

/// A report in which every text contains `name`.
fn report(name: &str) -> Report {
    let mut figure = figure(name);
    figure.right = Some(Axis::new(format!("{name} right"), Unit::named(format!("{name} unit"))));
    figure.series[0].right = true;
    figure.warnings.push(format!("{name} warning"));
    figure.annotations.push(Annotation { place: Place::X(0.015), text: format!("{name} annotation") });
    let heading = format!("{name} column");
    let mut table = Table::new([(heading.as_str(), Unit::None)]);
    table.title = format!("{name} table");
    table.note = format!("{name} note");
    table
        .rows
        .push(Row { cells: vec![format!("{name} cell").into()], invalid: Some(format!("{name} reason")) });
    Report {
        title: format!("{name} title"),
        verdicts: vec![Verdict { standing: Standing::Bad, text: format!("{name} verdict") }],
        summary: vec![format!("{name} summary")],
        sections: vec![Section {
            heading: format!("{name} section"),
            paragraphs: vec![format!("{name} paragraph")],
            tables: vec![table],
            figures: vec![figure],
        }],
        description: vec![Fact::new(format!("{name} fact"), format!("{name} value"))],
    }
}

/// The page without what is inside its scripts and styles, as XML, and the contents of its scripts.
fn parse(page: &str) -> (String, Vec<String>) {
    let mut markup = String::new();
    let mut scripts = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("it is HTML");
    while let Some(start) = ["<script", "<style"].into_iter().filter_map(|tag| rest.find(tag)).min() {
        let body = start + rest[start..].find('>').unwrap() + 1;
        let end = body
            + rest[body..]
                .find(if rest[start..].starts_with("<script") { "</script>" } else { "</style>" })
                .unwrap();
        markup.push_str(&rest[..body]);
        scripts.push(rest[body..end].to_owned());
        rest = &rest[end..];
    }
    (markup + rest, scripts)
}

/// What a person reads of a page without its scripts.
fn words(document: &Document<'_>) -> String {
    document.descendants().filter_map(|node| node.text()).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_page_contains_every_text_and_every_series() {
    let page = report("my").html();
    let (markup, _) = parse(&page);
    let document = Document::parse(&markup).unwrap();
    let words = words(&document);
    for what in [
        "title",
        "verdict",
        "summary",
        "section",
        "paragraph",
        "table",
        "column",
        "cell",
        "reason",
        "note",
        "figure",
        "caption",
        "warning",
        "annotation",
        "x",
        "right",
        "unit",
        "line",
        "steps",
        "points",
        "late",
        "fact",
        "value",
    ] {
        assert!(words.contains(&format!("my {what}")), "{what} is missing");
    }
}

#[test]
fn no_text_becomes_markup() {
    let count = |name: &str| {
        let page = report(name).html();
        let (markup, scripts) = parse(&page);
        let document = Document::parse(&markup).unwrap();
        assert!(words(&document).contains(&name.replace('\u{1b}', "\u{fffd}")));
        (document.descendants().filter(roxmltree::Node::is_element).count(), scripts.len())
    };
    assert_eq!(count("my"), count(HOSTILE));
}

#[test]
fn the_data_of_a_figure_is_in_the_units_that_are_shown() {
    let (_, scripts) = parse(&report(HOSTILE).html());
    let data: serde_json::Value =
        scripts.iter().find_map(|script| serde_json::from_str(script).ok()).unwrap();
    assert_eq!(data["x"]["unit"], "ms");
    let series = &data["series"][1];
    assert_eq!(series["name"], format!("{HOSTILE} steps"));
    assert_eq!(series["x"], serde_json::json!([10.0, 20.0]));
    assert_eq!(series["y"], serde_json::json!([500.0, 300.0]));
    assert_eq!(series["low"], serde_json::json!([400.0, null]));
    assert_eq!(series["invalid"]["1"], format!("{HOSTILE} late"));
}

#[test]
fn a_page_opens_without_a_network() {
    let mut report = report("my");
    report.sections = vec![report.sections[0].clone(); 3];
    let page = report.html();
    let (markup, _) = parse(&page);
    let document = Document::parse(&markup).unwrap();
    let fetching = ["src", "href", "srcset", "action", "data", "poster"];
    for node in document.descendants() {
        let fetches = |attribute: roxmltree::Attribute<'_, '_>| {
            fetching.contains(&attribute.name()) && !attribute.value().starts_with('#')
        };
        assert!(!node.attributes().any(fetches), "{node:?}");
    }
    assert!(page.contains("content=\"default-src 'none';"));
    assert!(!page.contains("@import") && !page.contains("url("));
}

#[test]
fn a_page_names_the_licence_of_what_it_contains() {
    let page = report("my").html();
    assert!(page.contains("The MIT License (MIT)") && page.contains("Leon Sorokin"));
}

#[test]
fn a_point_that_is_not_valid_is_a_cross_that_no_line_leads_to() {
    let points = |reason: Option<&str>| {
        let middle = Point { invalid: reason.map(str::to_owned), ..Point::new(2.0, 9.0) };
        [Point::new(1.0, 1.0), middle, Point::new(3.0, 1.0)]
    };
    let svg = |reason| {
        let series = Series::new("s", Style::Line, points(reason));
        Figure::new("f", Axis::new("x", Unit::None), Axis::new("y", Unit::None)).series(series).svg()
    };
    let marks = |svg: &str| svg.matches("<circle").count();
    let (valid, invalid) = (svg(None), svg(Some("late")));
    assert_eq!(marks(&valid) - marks(&invalid), 1);
    assert!(invalid.contains("not valid: late"));
}

#[test]
fn a_bar_stands_at_its_name_with_its_number_unless_it_is_not_valid() {
    let names = ["one and more words", "two"].map(str::to_owned).to_vec();
    let points = [Point::new(0.0, 37_040_000.0), Point::new(1.0, 5e8).invalid("late")];
    let figure =
        Figure::new("bars", Axis::named("who", names), rate()).series(Series::new("s", Style::Bars, points));
    let svg = figure.svg();
    let picture = Document::parse(&svg).unwrap();
    let is_bar = |node: &roxmltree::Node<'_, '_>| {
        node.has_tag_name("rect") && node.parent().is_some_and(|parent| parent.has_attribute("stroke"))
    };
    assert_eq!(picture.descendants().filter(is_bar).count(), 1);
    let words = words(&picture);
    for word in ["one and more words", "two", "37", "not valid: late"] {
        assert!(words.lines().any(|line| line == word), "{word:?} is not in {words}");
    }
    let sections = vec![Section { figures: vec![figure], ..Section::default() }];
    let (_, scripts) = parse(&Report { sections, ..Report::default() }.html());
    assert!(scripts.iter().any(|script| script.contains(r#""names":["one and more words","two"]"#)));
}

#[test]
fn a_picture_has_the_same_size_on_every_machine() {
    let png = figure("my").png().unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    assert_eq!(png[16..20], 1720_u32.to_be_bytes());
}

#[test]
fn a_figure_of_nothing_and_one_of_hostile_numbers_are_drawn() {
    let numbers = [f64::NAN, f64::INFINITY, f64::MIN, f64::MAX, f64::MIN_POSITIVE, 0.0, -1.0, 1.0];
    let points = || numbers.iter().flat_map(|x| numbers.map(|y| Point::new(*x, y).between(y, *x)));
    for logarithmic in [false, true] {
        let axis = || Axis { logarithmic, ..Axis::new("", Unit::Bytes) };
        let empty = Figure::new("", axis(), axis());
        let full = empty.clone().series(Series::new("", Style::Line, points()));
        for figure in [empty, full] {
            assert!(!figure.svg().contains("NaN") && !figure.svg().contains("inf"));
            let sections = vec![Section { figures: vec![figure], ..Section::default() }];
            let html = Report { sections, ..Report::default() }.html();
            assert!(html.contains("<svg") && !html.contains("NaN") && !html.contains("Infinity"));
        }
    }
}
