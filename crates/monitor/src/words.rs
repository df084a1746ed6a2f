//! Numbers as people read them.

pub fn bytes(value: f64) -> String {
    let mut value = value;
    let mut units = ["B", "KiB", "MiB", "GiB", "TiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    for larger in units {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    format!("{} {unit}", number(value))
}

pub fn seconds(value: f64) -> String {
    match value {
        value if value < 120.0 => format!("{} s", number(value)),
        value if value < 7200.0 => format!("{} min", number(value / 60.0)),
        value => format!("{} h", number(value / 3600.0)),
    }
}

/// With as many digits as matter.
pub fn number(value: f64) -> String {
    if value >= 10.0 || value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

pub fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}
