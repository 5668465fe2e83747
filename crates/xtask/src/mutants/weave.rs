//! Puts all mutants of a file into one text: `(if is_mutant(7) { a != b } else { a == b })`. One
//! build then serves all of them, and a variable of the environment chooses.

use super::sample::{Genre, Mutant, Position};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// The variable that holds the number of the mutant to be tested.
pub(super) const CHOICE: &str = "TOW_MUTANT";

/// What every crate with mutants gets at the end of its `lib.rs`.
pub(super) const CHOOSER: &str = r#"
/// Whether a test has chosen this mutant.
pub(crate) fn is_mutant(number: usize) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<usize>> = std::sync::OnceLock::new();
    let read = || std::env::var("TOW_MUTANT").ok()?.parse().ok();
    *CHOSEN.get_or_init(read) == Some(number)
}
"#;

/// A file with its mutants in it.
#[derive(Debug, Default)]
pub(super) struct Woven {
    pub(super) text: String,
    /// The bytes of the text that only this mutant has.
    pub(super) own: Vec<(usize, Range<usize>)>,
    /// The bytes around a mutant that had to be changed to have it.
    pub(super) around: Vec<(usize, Range<usize>)>,
    /// Mutants that no expression can hold beside the original. Each needs a build of its own.
    pub(super) alone: Vec<usize>,
}

/// Puts mutants, each with its number, into a source file. Functions lose their `const`, because a
/// choice is made at run time, except those in `stay_const`.
pub(super) fn weave(
    source: &str,
    mutants: &[(usize, &Mutant)],
    stay_const: &BTreeSet<String>,
) -> Result<Woven, String> {
    let file = syn::parse_file(source).map_err(|error| error.to_string())?;
    let mut finder = Finder {
        lines: Lines::new(source),
        mutants,
        stay_const,
        is_const: false,
        sites: BTreeMap::new(),
        placed: BTreeSet::new(),
        alone: BTreeSet::new(),
    };
    finder.visit_file(&file);
    let unplaced = mutants.iter().map(|(number, _)| *number);
    let unplaced = unplaced.filter(|number| !finder.placed.contains(number));
    let alone: BTreeSet<usize> = unplaced.chain(finder.alone).collect();
    let sites: Vec<(Key, Site)> = finder.sites.into_iter().collect();
    let mut woven = Woven {
        alone: alone.into_iter().collect(),
        ..Woven::default()
    };
    woven.emit(source, 0..source.len(), &sites);
    Ok(woven)
}

/// A source file with one mutant in place of the original.
pub(super) fn replace(source: &str, mutant: &Mutant) -> String {
    let lines = Lines::new(source);
    let (start, end) = (lines.byte(mutant.start), lines.byte(mutant.end));
    format!(
        "{}{}{}",
        &source[..start],
        mutant.replacement,
        &source[end..]
    )
}

/// Where a site begins, insertions before expressions, long ones before short ones.
type Key = (usize, bool, std::cmp::Reverse<usize>);

#[derive(Debug)]
enum Site {
    /// At the beginning of a function: return this instead.
    Return(Vec<(usize, String)>),
    /// Behind the pattern of an arm without a guard.
    Arm(Vec<usize>),
    /// Instead of an expression.
    Expression(Vec<(usize, String)>),
    /// The `const` of a function.
    Const,
}

impl Woven {
    fn emit(&mut self, source: &str, bytes: Range<usize>, sites: &[(Key, Site)]) {
        let mut at = bytes.start;
        let mut rest = sites;
        while let Some((((start, _, end), site), behind)) = rest.split_first() {
            self.text += &source[at..*start];
            let inside = behind.partition_point(|((other, _, _), _)| *other < end.0);
            let (inside, behind) = behind.split_at(inside);
            self.emit_site(source, *start..end.0, site, inside);
            (at, rest) = (end.0, behind);
        }
        self.text += &source[at..bytes.end];
    }

    fn emit_site(
        &mut self,
        source: &str,
        bytes: Range<usize>,
        site: &Site,
        inside: &[(Key, Site)],
    ) {
        let begin = self.text.len();
        match site {
            Site::Const => {}
            Site::Return(values) => {
                for (number, value) in values {
                    self.text += &format!("if crate::is_mutant({number}) {{ return ");
                    self.push_own(*number, value);
                    self.text += "; } ";
                }
            }
            Site::Arm(numbers) => {
                for (place, number) in numbers.iter().enumerate() {
                    self.text += if place == 0 { " if " } else { " && " };
                    self.push_own(*number, &format!("!crate::is_mutant({number})"));
                }
            }
            Site::Expression(others) => {
                self.text.push('(');
                for (number, other) in others {
                    self.text += &format!("if crate::is_mutant({number}) {{ ");
                    self.push_own(*number, other);
                    self.text += " } else ";
                }
                self.text += "{ ";
                self.emit(source, bytes, inside);
                self.text += " })";
                let end = self.text.len();
                let around = others.iter().map(|(number, _)| (*number, begin..end));
                self.around.extend(around);
            }
        }
    }

    fn push_own(&mut self, number: usize, text: &str) {
        let begin = self.text.len();
        self.text += text;
        self.own.push((number, begin..self.text.len()));
    }
}

/// Converts positions to bytes.
struct Lines<'a> {
    source: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(source: &'a str) -> Self {
        let after_newlines = source.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(after_newlines).collect();
        Self { source, starts }
    }

    fn byte(&self, (line, column): Position) -> usize {
        let start = self.starts.get(line - 1).copied().unwrap_or_default();
        let mut columns = self.source[start..].char_indices();
        columns
            .nth(column - 1)
            .map_or(self.source.len(), |(at, _)| start + at)
    }

    fn bytes(&self, span: proc_macro2::Span) -> Range<usize> {
        let byte = |at: proc_macro2::LineColumn| self.byte((at.line, at.column + 1));
        byte(span.start())..byte(span.end())
    }
}

/// Finds the place of each mutant.
struct Finder<'a> {
    lines: Lines<'a>,
    mutants: &'a [(usize, &'a Mutant)],
    stay_const: &'a BTreeSet<String>,
    /// Inside of something that is computed by the compiler.
    is_const: bool,
    sites: BTreeMap<Key, Site>,
    placed: BTreeSet<usize>,
    alone: BTreeSet<usize>,
}

impl<'a> Finder<'a> {
    /// The mutants of a kind that begin in these bytes.
    fn mutants_at(&self, genre: Genre, start: Range<usize>) -> Vec<(usize, &'a Mutant)> {
        let is_it = |(_, mutant): &&(usize, &Mutant)| {
            mutant.genre == genre && start.contains(&self.lines.byte(mutant.start))
        };
        self.mutants.iter().filter(is_it).copied().collect()
    }

    /// Whether a mutant can be here beside the original.
    fn place(&mut self, number: usize) -> bool {
        self.placed.insert(number);
        if self.is_const {
            self.alone.insert(number);
        }
        !self.is_const
    }

    fn put_expression(&mut self, number: usize, bytes: Range<usize>, other: String) {
        if self.place(number) {
            let key = (bytes.start, true, std::cmp::Reverse(bytes.end));
            let site = self.sites.entry(key);
            let site = site.or_insert_with(|| Site::Expression(Vec::new()));
            if let Site::Expression(others) = site {
                others.push((number, other));
            }
        }
    }

    /// The text of an expression with a mutant in it.
    fn changed(&self, bytes: &Range<usize>, mutant: &Mutant) -> String {
        let (start, end) = (self.lines.byte(mutant.start), self.lines.byte(mutant.end));
        let source = self.lines.source;
        let (before, behind) = (&source[bytes.start..start], &source[end..bytes.end]);
        format!("{before}{}{behind}", mutant.replacement)
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) -> bool {
        let was_const = self.is_const;
        if let Some(token) = signature.constness {
            if self.stay_const.contains(&signature.ident.to_string()) {
                self.is_const = true;
            } else {
                let bytes = self.lines.bytes(token.span());
                let key = (bytes.start, true, std::cmp::Reverse(bytes.end));
                self.sites.insert(key, Site::Const);
            }
        }
        let Some(first) = block.stmts.first() else {
            return was_const;
        };
        let start = self.lines.bytes(first.span()).start;
        for (number, mutant) in self.mutants_at(Genre::Function, start..start + 1) {
            if !self.place(number) {
                continue;
            }
            if mutant.returns_hidden_type {
                self.alone.insert(number);
                continue;
            }
            let key = (start, false, std::cmp::Reverse(start));
            let site = self.sites.entry(key);
            let site = site.or_insert_with(|| Site::Return(Vec::new()));
            if let Site::Return(values) = site {
                values.push((number, mutant.replacement.clone()));
            }
        }
        was_const
    }

    fn operator(&mut self, expression: &syn::Expr, operator: proc_macro2::Span) {
        let start = self.lines.bytes(operator).start;
        for (number, mutant) in self.mutants_at(Genre::Operator, start..start + 1) {
            if has_let(expression) {
                self.placed.insert(number);
                self.alone.insert(number);
                continue;
            }
            let bytes = self.lines.bytes(expression.span());
            let other = self.changed(&bytes, mutant);
            self.put_expression(number, bytes, other);
        }
    }

    fn in_const(&mut self, visit: impl FnOnce(&mut Self)) {
        let was_const = std::mem::replace(&mut self.is_const, true);
        visit(self);
        self.is_const = was_const;
    }
}

/// Whether an expression is a chain with `let` in it, which nothing can be put around.
fn has_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let was_const = self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
        self.is_const = was_const;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let was_const = self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
        self.is_const = was_const;
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        self.in_const(|finder| visit::visit_item_const(finder, item));
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        self.in_const(|finder| visit::visit_impl_item_const(finder, item));
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        self.in_const(|finder| visit::visit_item_static(finder, item));
    }

    fn visit_expr(&mut self, expression: &'ast syn::Expr) {
        match expression {
            syn::Expr::Binary(binary) => self.operator(expression, binary.op.span()),
            syn::Expr::Unary(unary) => self.operator(expression, unary.op.span()),
            syn::Expr::Struct(value) => {
                for field in &value.fields {
                    let start = self.lines.bytes(field.span()).start;
                    for (number, mutant) in self.mutants_at(Genre::Field, start..start + 1) {
                        let bytes = self.lines.bytes(expression.span());
                        let other = self.changed(&bytes, mutant);
                        self.put_expression(number, bytes, other);
                    }
                }
            }
            _ => {}
        }
        visit::visit_expr(self, expression);
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        let guard = arm.guard.as_ref().map(|(_, guard)| guard);
        let start = self.lines.bytes(arm.span()).start;
        for (number, _) in self.mutants_at(Genre::Arm, start..start + 1) {
            if let Some(guard) = guard {
                let bytes = self.lines.bytes(guard.span());
                self.put_expression(number, bytes, "false".to_owned());
            } else if self.place(number) {
                let end = self.lines.bytes(arm.pat.span()).end;
                let key = (end, false, std::cmp::Reverse(end));
                let site = self.sites.entry(key);
                if let Site::Arm(numbers) = site.or_insert_with(|| Site::Arm(Vec::new())) {
                    numbers.push(number);
                }
            }
        }
        if let Some(guard) = guard {
            let bytes = self.lines.bytes(guard.span());
            let start = bytes.start..bytes.start + 1;
            for (number, mutant) in self.mutants_at(Genre::Guard, start) {
                self.put_expression(number, bytes.clone(), mutant.replacement.clone());
            }
        }
        visit::visit_arm(self, arm);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
const fn larger(a: u32, b: u32) -> bool {
    match a {
        0 => false,
        _ => a > b,
    }
}
";

    fn mutant(genre: Genre, start: Position, end: Position, replacement: &str) -> Mutant {
        Mutant {
            name: String::new(),
            module: "core",
            package: String::new(),
            file: String::new(),
            genre,
            start,
            end,
            replacement: replacement.to_owned(),
            returns_hidden_type: false,
        }
    }

    fn three() -> [Mutant; 3] {
        [
            mutant(Genre::Function, (2, 5), (5, 6), "true"),
            mutant(Genre::Arm, (3, 9), (3, 20), ""),
            mutant(Genre::Operator, (4, 16), (4, 17), "<"),
        ]
    }

    #[test]
    fn one_text_holds_all_mutants_of_a_file() {
        let mutants = three();
        let numbered: Vec<(usize, &Mutant)> = mutants.iter().enumerate().collect();
        let woven = weave(SOURCE, &numbered, &BTreeSet::new()).expect("Rust");
        let expected = [
            " fn larger(a: u32, b: u32) -> bool {",
            "    if crate::is_mutant(0) { return true; } match a {",
            "        0 if !crate::is_mutant(1) => false,",
            "        _ => (if crate::is_mutant(2) { a < b } else { a > b }),",
            "    }",
            "}",
        ];
        assert_eq!(woven.text.lines().collect::<Vec<_>>(), expected);
        let (number, own) = woven.own.last().expect("one of its own");
        assert_eq!((*number, &woven.text[own.clone()]), (2, "a < b"));
        assert_eq!(woven.alone, Vec::<usize>::new());
    }

    #[test]
    fn what_the_compiler_computes_has_no_choice() {
        let mutants = three();
        let numbered: Vec<(usize, &Mutant)> = mutants.iter().enumerate().collect();
        let stay_const = BTreeSet::from(["larger".to_owned()]);
        let woven = weave(SOURCE, &numbered, &stay_const).expect("Rust");
        assert_eq!((woven.text.as_str(), woven.alone), (SOURCE, vec![0, 1, 2]));
    }

    #[test]
    fn a_mutant_alone_is_in_place_of_the_original() {
        let [_, _, operator] = three();
        let changed = replace(SOURCE, &operator);
        assert_eq!(changed, SOURCE.replace("a > b", "a < b"));
    }
}
