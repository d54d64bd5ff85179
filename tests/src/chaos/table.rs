//! Reports as a table: a row for each shape, a column for each killer.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use super::round::{Killer, Report};
use super::shape::Shape;

/// All rounds of one shape and one killer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Column {
    pub rounds: usize,
    /// Members that were left, of all rounds together.
    pub survivors: usize,
    /// Milliseconds, ascending, of the rounds that left nothing.
    pub took: Vec<f64>,
}

impl Column {
    /// The time within which so many of a hundred were gone.
    #[must_use]
    pub fn percentile(&self, of_a_hundred: usize) -> Option<f64> {
        let last = self.took.len().checked_sub(1)?;
        self.took.get((last * of_a_hundred).div_ceil(100)).copied()
    }
}

/// Every cell that was played.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    cells: BTreeMap<(Shape, Killer), Column>,
    killers: Vec<Killer>,
    pub strays: Vec<String>,
}

impl Table {
    #[must_use]
    pub fn of(killers: &[Killer], reports: &[Report]) -> Self {
        let mut table = Self { killers: killers.to_vec(), ..Self::default() };
        for report in reports {
            table.strays.extend(report.strays.iter().map(|stray| format!("{}: {stray}", report.killer.name())));
            for tree in &report.trees {
                let cell = table.cells.entry((tree.shape, report.killer)).or_default();
                cell.rounds += 1;
                cell.survivors += tree.left.survivors();
                cell.took.extend(tree.took);
            }
        }
        for cell in table.cells.values_mut() {
            cell.took.sort_by(f64::total_cmp);
        }
        table
    }

    /// The cell, if it was played.
    #[must_use]
    pub fn cell(&self, shape: Shape, killer: Killer) -> Option<&Column> {
        self.cells.get(&(shape, killer))
    }

    /// Every cell of this killer together.
    #[must_use]
    pub fn survivors(&self, killer: Killer) -> usize {
        self.cells.iter().filter(|((_, of), _)| *of == killer).map(|(_, cell)| cell.survivors).sum()
    }
}

const FIRST: usize = 20;
const OTHERS: usize = 19;

impl Display for Table {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "survivors / rounds, and milliseconds until the tree was gone (median, 99 of 100)")?;
        write!(f, "{:FIRST$}", "")?;
        for killer in &self.killers {
            write!(f, "{:>OTHERS$}", killer.name())?;
        }
        for shape in Shape::ALL.into_iter().filter(|shape| self.cells.keys().any(|(of, _)| of == shape)) {
            write!(f, "\n{:FIRST$}", shape.name())?;
            for killer in &self.killers {
                let text = self.cell(shape, *killer).map_or_else(|| "no guard".to_owned(), ToString::to_string);
                write!(f, "{text:>OTHERS$}")?;
            }
        }
        writeln!(f)
    }
}

impl Display for Column {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.survivors, self.rounds)?;
        match (self.percentile(50), self.percentile(99)) {
            (Some(median), Some(most)) => write!(f, " {median:.0} {most:.0}"),
            _ => write!(f, " - -"),
        }
    }
}
