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
    let headings = rows().map(cells).find(|cells| cells.first().is_some_and(|first| first == "Attack"))?;
    let column = headings.iter().rposition(|heading| heading.starts_with(title))?;
    let verdicts = rows().map(cells).filter_map(|cells| cells.get(column).cloned());
    let tried: Vec<String> =
        verdicts.filter(|cell| ["held", "**broken**", "unclear"].contains(&cell.as_str())).collect();
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
    }

    #[test]
    fn the_matrix_knows_us() {
        assert!(of("native").is_some_and(|(held, tried)| held > 100 && held == tried));
    }
}
