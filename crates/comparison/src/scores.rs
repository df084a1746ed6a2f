//! How many attacks of the escape suite each holds: from the matrix that the tests keep true.

const MATRIX: &str = include_str!("../../../THREATS.md");

/// Held, and tried, as an ordinary user. Nothing for those who are not in the matrix.
pub fn of(name: &str) -> Option<(usize, usize)> {
    let title = match name {
        "native" => "belljar (user)".to_owned(),
        "bwrap" => "bubblewrap".to_owned(),
        other => format!("belljar {other}"),
    };
    count(MATRIX, &title)
}

fn count(matrix: &str, title: &str) -> Option<(usize, usize)> {
    let rows = || matrix.lines().filter(|line| line.starts_with("| "));
    let cells = |line: &str| -> Vec<String> {
        let line = line.replace("\\|", "\u{1}");
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    // Each table has headings of its own.
    let mut column = None;
    let mut tried: Vec<String> = Vec::new();
    for cells in rows().map(cells) {
        if cells.first().is_some_and(|first| first == "Attack") {
            column = cells.iter().rposition(|heading| heading.starts_with(title));
        } else if let Some(verdict) = column.and_then(|column| cells.get(column))
            && ["held", "**broken**", "unclear"].contains(&verdict.as_str())
        {
            tried.push(verdict.clone());
        }
    }
    let held = tried.iter().filter(|cell| *cell == "held").count();
    (!tried.is_empty()).then_some((held, tried.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_counted() {
        let matrix = "| Attack | Wall | belljar (user) | bubblewrap 0.8 |\n|:--|:--|:--|:--|\n\
                      | one \\| two | files | held | **broken** |\n| three | files | held | held |\n| four | x | – | unclear |\n";
        assert_eq!(count(matrix, "belljar (user)"), Some((2, 2)));
        assert_eq!(count(matrix, "bubblewrap"), Some((1, 3)));
        assert_eq!(count(matrix, "nobody"), None);
        let both = format!("| Attack | Wall | belljar wasm (user) |\n| zero | files | held |\n{matrix}");
        assert_eq!(count(&both, "belljar wasm"), Some((1, 1)));
        assert_eq!(count(&both, "bubblewrap"), Some((1, 3)));
    }

    #[test]
    fn the_matrix_knows_us() {
        assert!(of("native").is_some_and(|(held, tried)| held > 100 && held == tried));
    }
}
