//! The interface as an OpenAPI document: its own calls, and those of verbs, made from the types and
//! from the parser's description of the command line.

use super::words::{CALLED, INPUT};
use crate::help;
use clap::{Arg, Command};
use serde_json::{Map, Value, json};
use towline_wire::api::{API_VERSION, schema};
use towline_wire::report;

/// Where the schemas are in the document.
const SCHEMAS: &str = "/components/schemas";

pub(crate) fn openapi() -> Value {
    let described = schema::describe(SCHEMAS);
    let (answers, mut definitions) = report::schema::answers(SCHEMAS);
    definitions.extend(described.definitions);
    let mut paths = Map::new();
    for (call, args, answer) in &described.calls {
        let entry = operation(call.name, call.does, args, answer, call.is_stream);
        paths.insert(format!("/api/{}", call.name), entry);
    }
    let mut command = help::command();
    command.build();
    for verb in CALLED {
        if let Some(found) = command.find_subcommand(verb) {
            add_verb(&mut paths, found, verb, &answers);
        }
    }
    paths.sort_keys();
    definitions.sort_keys();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Towline",
            "description": "What `tow ui` answers on loopback. Each call is a POST with a JSON object \
                of arguments; the answer is one JSON document, or with `Accept: text/event-stream` \
                every reply as an event.",
            "version": API_VERSION.to_string(),
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {
                "token": { "type": "apiKey", "in": "header", "name": "X-Towline-Token" },
            },
        },
    })
}

fn add_verb(
    paths: &mut Map<String, Value>,
    command: &Command,
    name: &str,
    answers: &Map<String, Value>,
) {
    if command.has_subcommands() {
        for below in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            add_verb(
                paths,
                below,
                &format!("{name}.{}", below.get_name()),
                answers,
            );
        }
        return;
    }
    let about = command.get_about().map(ToString::to_string);
    let answer = answer_of(&name.replace('.', " "), answers);
    let entry = operation(
        name,
        &about.unwrap_or_default(),
        &args_of(command),
        &answer,
        false,
    );
    paths.insert(format!("/api/{name}"), entry);
}

/// What the forms of a verb print: `ps` and `ps --remote`.
fn answer_of(verb: &str, answers: &Map<String, Value>) -> Value {
    let below = format!("{verb} ");
    let is_form = |form: &str| {
        form == verb
            || form
                .strip_prefix(&below)
                .is_some_and(|rest| rest.starts_with('-') || rest.chars().all(char::is_uppercase))
    };
    let mut forms: Vec<Value> = Vec::new();
    for (_, prints) in answers.iter().filter(|(form, _)| is_form(form)) {
        let several = prints.get("anyOf").and_then(Value::as_array).cloned();
        for one in several.unwrap_or_else(|| vec![prints.clone()]) {
            if !forms.contains(&one) {
                forms.push(one);
            }
        }
    }
    match forms.len() {
        0 => json!({}),
        1 => forms.swap_remove(0),
        _ => json!({ "anyOf": forms }),
    }
}

fn args_of(command: &Command) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for arg in command.get_arguments() {
        let name = match arg.get_long() {
            Some("help" | "json") => continue,
            Some(long) => long.replace('-', "_"),
            None => arg.get_id().to_string(),
        };
        if arg.is_required_set() {
            required.push(Value::from(name.clone()));
        }
        properties.insert(name, arg_schema(arg));
    }
    let input =
        json!({ "type": "string", "description": "What the verb reads from standard input." });
    properties.insert(INPUT.to_owned(), input);
    let mut schema =
        json!({ "type": "object", "properties": properties, "additionalProperties": false });
    if !required.is_empty() {
        schema["required"] = required.into();
    }
    schema
}

fn arg_schema(arg: &Arg) -> Value {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let one = json!({ "type": ["string", "number"] });
    let mut schema = if !arg.get_action().takes_values() {
        json!({ "type": ["boolean", "null"] })
    } else if super::words::takes_several(arg) {
        let least = usize::from(arg.is_required_set());
        json!({ "anyOf": [one, { "type": "array", "items": one, "minItems": least }, { "type": "null" }] })
    } else if arg.is_required_set() {
        one
    } else {
        json!({ "type": ["string", "number", "null"] })
    };
    schema["description"] = help.into();
    schema
}

fn operation(name: &str, does: &str, args: &Value, answer: &Value, is_stream: bool) -> Value {
    let events = json!({
        "description": "Every reply as a server-sent event.",
        "schema": { "type": "string" },
    });
    let done = if is_stream {
        json!({ "text/event-stream": events })
    } else {
        json!({ "application/json": { "schema": answer }, "text/event-stream": events })
    };
    let failure = json!({
        "description": "Refused: what is wrong and what to do about it.",
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Failure" } } },
    });
    json!({ "post": {
        "operationId": name,
        "description": does,
        "requestBody": {
            "required": true,
            "content": { "application/json": { "schema": args } },
        },
        "responses": {
            "200": { "description": "The answer.", "content": done },
            "default": failure,
        },
    } })
}
