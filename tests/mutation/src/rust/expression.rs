//! The changes of one expression.

use syn::spanned::Spanned;
use syn::{BinOp, Expr, ExprBinary, ExprLit, ExprMethodCall, ExprPath, Lit};

use crate::change::Edit;

/// A change of an expression: its kind, what a reader sees, and how the copy makes it.
pub(super) type Changed = (&'static str, String, Edit);

/// The changes of this expression itself, whose text this is. Those of its parts are not among them.
pub(super) fn changes(expression: &Expr, text: &str, offset: usize) -> Vec<Changed> {
    let instead = |kind, other: String| (kind, other.clone(), Edit::Instead(other));
    match expression {
        Expr::Binary(binary) if !has_let(expression) => operator(binary, text, offset),
        Expr::Lit(literal) => self::literal(literal).map(|other| instead("literal", other)).into_iter().collect(),
        Expr::Unary(unary) if matches!(unary.op, syn::UnOp::Not(_)) => {
            vec![instead("not", text[unary.expr.span().byte_range().start - offset..].to_owned())]
        }
        Expr::MethodCall(call) => {
            method(call, text, offset).map(|other| instead("method", other)).into_iter().collect()
        }
        Expr::Call(call) => match &*call.func {
            Expr::Path(path) if path.path.is_ident("Some") => vec![instead("some", "None".to_owned())],
            _ => Vec::new(),
        },
        Expr::Path(path) if is_constant(path) => vec![("constant", format!("{text} and one"), Edit::Beside)],
        _ => Vec::new(),
    }
}

/// Whether a condition binds names; it may not stand in parentheses then.
pub(super) fn has_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

fn operator(binary: &ExprBinary, text: &str, offset: usize) -> Vec<Changed> {
    let others: &[&str] = match binary.op {
        BinOp::Lt(_) => &["<="],
        BinOp::Le(_) => &["<"],
        BinOp::Gt(_) => &[">="],
        BinOp::Ge(_) => &[">"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::Add(_) => &["-"],
        BinOp::Sub(_) => &["+"],
        BinOp::Mul(_) => &["+"],
        BinOp::Div(_) => &["*"],
        BinOp::Rem(_) => &["/"],
        BinOp::BitAnd(_) => &["|"],
        BinOp::BitOr(_) => &["&"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::AddAssign(_) => &["-="],
        BinOp::SubAssign(_) => &["+="],
        BinOp::BitOrAssign(_) => &["&="],
        BinOp::BitAndAssign(_) => &["|="],
        _ => &[],
    };
    let at = binary.op.span().byte_range();
    let other = |other: &&str| format!("{}{other}{}", &text[..at.start - offset], &text[at.end - offset..]);
    others.iter().map(other).map(|other| ("operator", other.clone(), Edit::Instead(other))).collect()
}

fn literal(literal: &ExprLit) -> Option<String> {
    match &literal.lit {
        Lit::Int(number) => {
            let value = number.base10_parse::<u128>().ok()?;
            Some(format!("{}{}", value + 1, number.suffix()))
        }
        Lit::Bool(value) => Some((!value.value).to_string()),
        _ => None,
    }
}

fn method(call: &ExprMethodCall, text: &str, offset: usize) -> Option<String> {
    let name = call.method.to_string();
    let pairs = [
        ("min", "max"),
        ("saturating_add", "saturating_sub"),
        ("wrapping_add", "wrapping_sub"),
        ("checked_add", "checked_sub"),
        ("is_some", "is_none"),
        ("is_ok", "is_err"),
        ("is_some_and", "is_none_or"),
        ("any", "all"),
        ("first", "last"),
        ("push_back", "push_front"),
        ("pop_front", "pop_back"),
        ("next", "last"),
    ];
    let to = pairs.iter().find_map(|(one, two)| match () {
        () if name == *one => Some(*two),
        () if name == *two => Some(*one),
        () => None,
    });
    let at = call.method.span().byte_range();
    match name.as_str() {
        "is_empty" | "contains" | "contains_key" | "starts_with" => Some(format!("!{text}")),
        _ => to.map(|to| format!("{}{to}{}", &text[..at.start - offset], &text[at.end - offset..])),
    }
}

fn is_constant(path: &ExprPath) -> bool {
    let Some(last) = path.path.segments.last() else { return false };
    let name = last.ident.to_string();
    let is_loud = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    name.len() > 1 && name.chars().all(is_loud) && name != "ZERO" && name != "MAX" && name != "MIN"
}
