//! A directed graph: its strongly connected components, and a short cycle in each.

use std::collections::VecDeque;

/// A graph whose nodes are the numbers below its size, and whose edges have a label.
#[derive(Debug)]
pub(crate) struct Graph<L> {
    edges: Vec<Vec<(usize, L)>>,
}

/// An edge of a cycle: where it begins, its label, and where it ends.
pub(crate) type Step<L> = (usize, L, usize);

/// Nodes of a component from which its shortest cycle is looked for. More would find a shorter
/// one at times, and cost a search each.
const TRIED_MAX: usize = 32;

impl<L: Copy> Graph<L> {
    pub(crate) fn new(size: usize) -> Self {
        let edges = (0..size).map(|_| Vec::new()).collect();
        Self { edges }
    }

    pub(crate) fn add_node(&mut self) -> usize {
        self.edges.push(Vec::new());
        self.edges.len() - 1
    }

    pub(crate) fn add(&mut self, from: usize, to: usize, label: L) {
        assert!(to < self.edges.len(), "an edge leads to a node");
        self.edges[from].push((to, label));
    }

    pub(crate) fn size(&self) -> usize {
        self.edges.len()
    }

    /// The components that have a cycle, by edges whose label is wanted. Tarjan 1972, with its
    /// stack of calls as a list: histories are longer than a thread's stack.
    pub(crate) fn components(&self, is_wanted: impl Fn(L) -> bool) -> Vec<Vec<usize>> {
        const UNSEEN: usize = usize::MAX;
        let size = self.edges.len();
        let (mut order, mut low) = (vec![UNSEEN; size], vec![UNSEEN; size]);
        let mut is_open = vec![false; size];
        let (mut open, mut found) = (Vec::new(), Vec::new());
        let mut count = 0;
        let mut calls: Vec<(usize, usize)> = Vec::new();
        for root in 0..size {
            if order[root] != UNSEEN {
                continue;
            }
            calls.push((root, 0));
            while let Some((node, place)) = calls.pop() {
                if place == 0 {
                    (order[node], low[node]) = (count, count);
                    count += 1;
                    open.push(node);
                    is_open[node] = true;
                }
                let Some(&(to, label)) = self.edges[node].get(place) else {
                    if low[node] == order[node] {
                        let first = open.iter().rposition(|it| *it == node);
                        let component = open.split_off(first.expect("a root is open"));
                        component.iter().for_each(|it| is_open[*it] = false);
                        if 1 < component.len() {
                            found.push(component);
                        }
                    }
                    if let Some(&(above, _)) = calls.last() {
                        low[above] = low[above].min(low[node]);
                    }
                    continue;
                };
                calls.push((node, place + 1));
                if !is_wanted(label) {
                    continue;
                }
                if order[to] == UNSEEN {
                    calls.push((to, 0));
                } else if is_open[to] {
                    low[node] = low[node].min(order[to]);
                }
            }
        }
        found
    }

    /// A short cycle among the nodes of a component, by wanted edges. `cost` is 0 or 1.
    pub(crate) fn short_cycle(
        &self,
        component: &[usize],
        is_wanted: impl Fn(L) -> bool,
        cost: impl Fn(L) -> u32,
    ) -> Option<Vec<Step<L>>> {
        let mut is_inside = vec![false; self.edges.len()];
        component.iter().for_each(|it| is_inside[*it] = true);
        let stride = component.len().div_ceil(TRIED_MAX).max(1);
        let tried = component.iter().step_by(stride);
        let cycles = tried.filter_map(|&node| {
            let is_taken = |to: usize, label| is_inside[to] && is_wanted(label);
            self.path((node, node), is_taken, &cost, usize::MAX)
        });
        cycles.min_by_key(|cycle| cycle.iter().map(|step| cost(step.1)).sum::<u32>())
    }

    /// The cheapest path of at least one edge between two nodes, by the edges that are taken. Gives
    /// up after so many nodes.
    pub(crate) fn path(
        &self,
        (from, to): (usize, usize),
        is_taken: impl Fn(usize, L) -> bool,
        cost: impl Fn(L) -> u32,
        nodes_max: usize,
    ) -> Option<Vec<Step<L>>> {
        let mut came: std::collections::HashMap<usize, (u32, usize, L)> =
            std::collections::HashMap::new();
        let mut queue = VecDeque::from([(0, from)]);
        let mut visited = 0;
        while let Some((spent, node)) = queue.pop_front() {
            if visited != 0 && node == to {
                return Some(walk_back(&came, from, to));
            }
            if node != from && came.get(&node).is_some_and(|it| it.0 < spent) {
                continue;
            }
            visited += 1;
            if nodes_max < visited {
                return None;
            }
            for &(next, label) in &self.edges[node] {
                let price = spent + cost(label);
                let is_better = came.get(&next).is_none_or(|it| price < it.0);
                if !is_taken(next, label) || !is_better {
                    continue;
                }
                came.insert(next, (price, node, label));
                match price == spent {
                    true => queue.push_front((price, next)),
                    false => queue.push_back((price, next)),
                }
            }
        }
        None
    }
}

/// The path to `to`, from where each node was come from.
fn walk_back<L: Copy>(
    came: &std::collections::HashMap<usize, (u32, usize, L)>,
    from: usize,
    to: usize,
) -> Vec<Step<L>> {
    let mut steps = Vec::new();
    let mut node = to;
    loop {
        let (_, before, label) = came[&node];
        steps.push((before, label, node));
        node = before;
        if node == from {
            break;
        }
    }
    steps.reverse();
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(usize, usize, u32)]) -> Graph<u32> {
        let mut graph = Graph::new(8);
        for (from, to, label) in edges {
            graph.add(*from, *to, *label);
        }
        graph
    }

    #[test]
    fn components_are_found_by_wanted_edges_alone() {
        let graph = graph(&[
            (0, 1, 1),
            (1, 2, 1),
            (2, 0, 2),
            (3, 4, 1),
            (4, 3, 1),
            (2, 3, 1),
        ]);
        let mut all = graph.components(|_| true);
        all.iter_mut().for_each(|it| it.sort_unstable());
        all.sort();
        assert_eq!(all, [vec![0, 1, 2], vec![3, 4]]);
        assert_eq!(graph.components(|label| label == 1).len(), 1);
        assert!(graph.components(|label| label == 2).is_empty());
    }

    #[test]
    fn the_cheapest_cycle_is_found() {
        let edges = [(0, 1, 1), (1, 0, 1), (0, 2, 0), (2, 3, 0), (3, 0, 0)];
        let graph = graph(&edges);
        let component = &graph.components(|_| true)[0];
        let cycle = graph.short_cycle(component, |_| true, |label| label);
        assert_eq!(cycle.map(|it| it.len()), Some(3));
        let cycle = graph.short_cycle(component, |_| true, |_| 1);
        assert_eq!(cycle.map(|it| it.len()), Some(2));
    }

    #[test]
    fn a_search_gives_up() {
        let graph = graph(&[(0, 1, 1), (1, 2, 1), (2, 3, 1)]);
        let path = |nodes_max| graph.path((0, 3), |_, _| true, |_| 1, nodes_max);
        assert_eq!(path(10).map(|it| it.len()), Some(3));
        assert!(path(2).is_none());
        assert!(graph.path((3, 0), |_, _| true, |_| 1, 10).is_none());
    }
}
