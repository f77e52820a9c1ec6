//! Walks through a file and finds the changes of it.

use std::collections::HashMap;
use std::ops::Range;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{Arm, Attribute, Block, Expr, Item, Pat, Signature, Stmt};

use super::configured::{is_compiled, is_test};
use super::expression::{changes, has_let};
use super::files::Source;
use super::{body, expression};
use crate::change::{Change, Edit, Found};

/// All changes of a file.
pub(crate) fn find(source: &Source) -> Found {
    let mut finder = Finder { source, within: Vec::new(), seen: HashMap::new(), found: Found::default() };
    finder.visit_file(&source.tree);
    finder.found
}

struct Finder<'a> {
    source: &'a Source,
    within: Vec<String>,
    seen: HashMap<String, usize>,
    found: Found,
}

impl Finder<'_> {
    fn text(&self, range: Range<usize>) -> &str {
        &self.source.text[range]
    }

    fn add(&mut self, range: Range<usize>, kind: &'static str, after: String, edit: Edit) {
        if self.within.is_empty() {
            return;
        }
        let (path, function) = (self.source.path.clone(), self.within.join("::"));
        let (before, line) = (self.text(range.clone()).to_owned(), 1 + self.text(0..range.start).matches('\n').count());
        let mut change = Change { path, function, nth: 0, range, line, kind, before, after, edit };
        let nth = self.seen.entry(change.key()).or_default();
        change.nth = *nth;
        *nth += 1;
        self.found.changes.push(change);
    }

    fn function(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        if !is_compiled(attributes) || is_test(attributes) {
            return;
        }
        if signature.constness.is_some() {
            self.found.left_out.const_functions += 1;
            return;
        }
        self.within.push(signature.ident.to_string());
        if !block.stmts.is_empty() && signature.ident != "default" {
            let at = block.brace_token.span.open().byte_range().end;
            for statement in body::statements(&signature.output) {
                self.add(at..at, "body", statement.clone(), Edit::First(statement));
            }
        }
        self.visit_block(block);
        self.within.pop();
    }

    fn condition(&mut self, condition: &Expr) {
        match condition {
            Expr::Let(_) => {}
            Expr::Binary(binary) if has_let(condition) => {
                self.condition(&binary.left);
                self.condition(&binary.right);
            }
            _ => {
                let range = condition.span().byte_range();
                let after = format!("!({})", self.text(range.clone()));
                self.add(range, "condition", after, Edit::Negated);
            }
        }
    }

    fn statement(&mut self, expression: &Expr, range: Range<usize>) {
        let mut called = expression;
        while let Expr::Await(syn::ExprAwait { base, .. }) | Expr::Try(syn::ExprTry { expr: base, .. }) = called {
            called = base;
        }
        if matches!(called, Expr::MethodCall(_) | Expr::Call(_) | Expr::Assign(_)) {
            self.add(range, "statement", String::new(), Edit::LeftOut);
        }
    }
}

/// The attributes of the expressions that dq puts them on.
fn attributes(expression: &Expr) -> &[Attribute] {
    match expression {
        Expr::Block(of) => &of.attrs,
        Expr::Call(of) => &of.attrs,
        Expr::If(of) => &of.attrs,
        Expr::MethodCall(of) => &of.attrs,
        Expr::Return(of) => &of.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Const(_) | Item::Static(_) => self.found.left_out.constants += 1,
            Item::Fn(item) => self.function(&item.attrs, &item.sig, &item.block),
            Item::Impl(item) if is_compiled(&item.attrs) => {
                let name = item.self_ty.span().byte_range();
                let name = self.text(name).split('<').next().unwrap_or_default().to_owned();
                self.within.push(name);
                item.items.iter().for_each(|inner| self.visit_impl_item(inner));
                self.within.pop();
            }
            Item::Trait(item) if is_compiled(&item.attrs) => {
                self.within.push(item.ident.to_string());
                item.items.iter().for_each(|inner| self.visit_trait_item(inner));
                self.within.pop();
            }
            Item::Mod(item) if is_compiled(&item.attrs) => visit::visit_item_mod(self, item),
            Item::Macro(_) => self.found.left_out.macros += 1,
            _ => {}
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        match item {
            syn::ImplItem::Fn(item) => self.function(&item.attrs, &item.sig, &item.block),
            syn::ImplItem::Const(_) => self.found.left_out.constants += 1,
            _ => {}
        }
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        if let syn::TraitItem::Fn(item) = item
            && let Some(block) = &item.default
        {
            self.function(&item.attrs, &item.sig, block);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        match statement {
            Stmt::Local(local) if !is_compiled(&local.attrs) => return,
            Stmt::Expr(expression, _) if !is_compiled(attributes(expression)) => return,
            Stmt::Expr(expression, Some(_)) => self.statement(expression, statement.span().byte_range()),
            Stmt::Macro(_) => self.found.left_out.macros += 1,
            _ => {}
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        if !is_compiled(&arm.attrs) {
            return;
        }
        if let Pat::Guard(guarded) = &arm.pat {
            let range = guarded.guard.span().byte_range();
            if !has_let(&guarded.guard) {
                self.add(range.clone(), "guard", "true".to_owned(), Edit::Always);
                self.add(range, "guard", "false".to_owned(), Edit::Never);
            }
            self.visit_expr(&guarded.guard);
        }
        self.visit_expr(&arm.body);
    }

    fn visit_expr_match(&mut self, expression: &'ast syn::ExprMatch) {
        self.visit_expr(&expression.expr);
        let takes_all = |pattern: &Pat| match pattern {
            Pat::Wild(_) => true,
            Pat::Ident(name) => name.ident.to_string().starts_with(|c: char| c.is_ascii_lowercase()),
            _ => false,
        };
        let is_last = expression.arms.last().is_some_and(|arm| takes_all(&arm.pat));
        for arm in expression.arms.iter().rev().skip(1).filter(|arm| is_last && is_compiled(&arm.attrs)) {
            if !matches!(arm.pat, Pat::Guard(_)) {
                let range = arm.pat.span().byte_range();
                let after = format!("{} if false", self.text(range.clone()));
                self.add(range.end..range.end, "arm", after, Edit::NeverTaken);
            }
        }
        expression.arms.iter().for_each(|arm| self.visit_arm(arm));
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        let range = expression.span().byte_range();
        match expression {
            Expr::Const(_) => return,
            Expr::Macro(_) => {
                self.found.left_out.macros += 1;
                return;
            }
            Expr::Repeat(repeat) => return self.visit_expr(&repeat.expr),
            Expr::Closure(closure) => return self.visit_expr(&closure.body),
            Expr::If(of) => self.condition(&of.cond),
            Expr::While(of) => self.condition(&of.cond),
            _ => {}
        }
        let found: Vec<expression::Changed> = changes(expression, self.text(range.clone()), range.start);
        found.into_iter().for_each(|(kind, after, edit)| self.add(range.clone(), kind, after, edit));
        visit::visit_expr(self, expression);
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        // `FieldValue { name }` has an expression without a text of its own.
        if is_compiled(&field.attrs) && field.colon_token.is_some() {
            self.visit_expr(&field.expr);
        }
    }

    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_path(&mut self, _: &'ast syn::Path) {}
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
    fn visit_generics(&mut self, _: &'ast syn::Generics) {}
    fn visit_angle_bracketed_generic_arguments(&mut self, _: &'ast syn::AngleBracketedGenericArguments) {}
}
