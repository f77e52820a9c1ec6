//! The curves of lateness as a picture: percentiles against milliseconds, both logarithmic.

use std::fmt::Write;
use std::path::Path;

use hdrhistogram::Histogram;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 40.0;
const LEGEND: f64 = 240.0;
/// Readable on a light and on a dark page.
const INK: &str = "#808890";
const COLOURS: [&str; 6] = ["#d9622b", "#2f7fd1", "#3d9a50", "#a05cc2", "#b58900", "#c23b6e"];
const PERCENTILES: [(f64, &str); 5] = [(0.0, "0"), (90.0, "90"), (99.0, "99"), (99.9, "99.9"), (99.99, "99.99")];

/// A named curve; a bare one is dashed.
#[derive(Debug)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Whether it is dq's.
    pub is_dq: bool,
    /// Its values, µs.
    pub values: Histogram<u64>,
}

fn x(percentile: f64) -> f64 {
    LEFT + (WIDTH - LEFT - LEGEND) * -(1.0 - percentile / 100.0).log10() / 4.0
}

fn y(ms: f64, most: f64) -> f64 {
    let (low, high) = (-1.0, most.log10());
    (HEIGHT - BOTTOM) - (HEIGHT - BOTTOM - 12.0) * ((ms.max(0.1).log10() - low) / (high - low)).min(1.0)
}

/// Draws the curves into a file.
pub fn draw(path: &Path, curves: &[Curve]) {
    std::fs::write(path, picture(curves)).expect("--svg names a writable file");
}

fn picture(curves: &[Curve]) -> String {
    let slowest = curves.iter().map(|curve| curve.values.value_at_percentile(99.99)).max().unwrap_or(1);
    let most = 10_f64.powf((slowest as f64 / 1e3).log10().ceil()).max(1.0);
    let mut svg = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11" fill="{INK}">"#
    );
    svg.push('\n');
    let (right, bottom) = (WIDTH - LEGEND, HEIGHT - BOTTOM);
    let mut line = |x1: f64, y1: f64, x2: f64, y2: f64| {
        writeln!(svg, r#"<path d="M{x1:.0} {y1:.1}L{x2:.0} {y2:.1}" stroke="{INK}" stroke-opacity=".35"/>"#)
    };
    let mut decade = 0.1;
    while decade <= most * 1.01 {
        line(LEFT, y(decade, most), right, y(decade, most)).unwrap();
        decade *= 10.0;
    }
    for (percentile, _) in PERCENTILES {
        line(x(percentile), 12.0, x(percentile), bottom).unwrap();
    }
    let mut text = |x: f64, y: f64, anchor: &str, text: &str| {
        writeln!(svg, r#"<text x="{x:.0}" y="{y:.0}" text-anchor="{anchor}">{text}</text>"#).unwrap();
    };
    let mut decade = 0.1;
    while decade <= most * 1.01 {
        text(LEFT - 6.0, y(decade, most) + 4.0, "end", &format!("{} ms", (decade * 10.0).round() / 10.0));
        decade *= 10.0;
    }
    for (percentile, name) in PERCENTILES {
        text(x(percentile), bottom + 16.0, "middle", name);
    }
    text(f64::midpoint(LEFT, right), HEIGHT - 6.0, "middle", "percent of the jobs start at most this late");
    for (at, curve) in curves.iter().enumerate() {
        text(right + 30.0, 24.0 + 16.0 * at as f64, "start", &curve.name);
    }
    for (at, curve) in curves.iter().enumerate() {
        let (colour, dash) =
            (COLOURS[at / 2 % COLOURS.len()], if curve.is_dq { "" } else { r#" stroke-dasharray="4 3""# });
        let points: Vec<String> = (0..=80)
            .map(|step| 100.0 * (1.0 - 10_f64.powf(-f64::from(step) / 20.0)))
            .map(|at| format!("{:.1} {:.1}", x(at), y(curve.values.value_at_percentile(at) as f64 / 1e3, most)))
            .collect();
        let key = 20.0 + 16.0 * at as f64;
        let sample = format!("M{:.0} {key}h18", right + 8.0);
        for path in [format!("M{}", points.join("L")), sample] {
            writeln!(svg, r#"<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.6"{dash}/>"#).unwrap();
        }
    }
    svg.push_str("</svg>\n");
    svg
}
