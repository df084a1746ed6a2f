/* QuickJS as a program that is called as Node's is: a file, `-e CODE`, `-p CODE`, or `-` for standard input. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quickjs-libc.h"
#include "quickjs.h"

/* `prelude.js` and `library.js`, as bytes; made by `cargo xtask interpreters`. */
#include "prelude.h"

/* The native stack that the engine for modules gives is larger; one of ours ends with an error that can be caught. */
static const size_t STACK = 1 << 20;

static int failed(JSContext *context) {
    js_std_dump_error(context);
    return 1;
}

/* Evaluates and, for a module, waits until it is done. */
static int evaluate(JSContext *context, const char *text, size_t length, const char *name, int flags, int print) {
    int module = (flags & JS_EVAL_TYPE_MASK) == JS_EVAL_TYPE_MODULE;
    JSValue value;
    if (module) {
        value = JS_Eval(context, text, length, name, flags | JS_EVAL_FLAG_COMPILE_ONLY);
        if (!JS_IsException(value)) {
            js_module_set_import_meta(context, value, false, true);
            value = JS_EvalFunction(context, value);
        }
        value = js_std_await(context, value);
    } else {
        value = JS_Eval(context, text, length, name, flags);
    }
    if (JS_IsException(value)) {
        JS_FreeValue(context, value);
        return failed(context);
    }
    if (print) {
        JSValue global = JS_GetGlobalObject(context);
        JSValue console = JS_GetPropertyStr(context, global, "console");
        JSValue log = JS_GetPropertyStr(context, console, "log");
        JSValue done = JS_Call(context, log, console, 1, (JSValueConst *)&value);
        JS_FreeValue(context, done);
        JS_FreeValue(context, log);
        JS_FreeValue(context, console);
        JS_FreeValue(context, global);
    }
    JS_FreeValue(context, value);
    return 0;
}

/* All of standard input, with a zero byte after it: the parser wants one. */
static char *input(size_t *length) {
    size_t room = 1 << 16, used = 0;
    char *text = malloc(room + 1);
    while (text) {
        size_t count = fread(text + used, 1, room - used, stdin);
        used += count;
        if (count == 0) {
            text[used] = 0;
            *length = used;
            return text;
        }
        if (used == room) {
            room *= 2;
            text = realloc(text, room + 1);
        }
    }
    return NULL;
}

/* What most scripts do without: read when one asks for it. */
static JSValue library(JSContext *context, JSValueConst self, int count, JSValueConst *values) {
    return JS_Eval(context, (const char *)LIBRARY, sizeof LIBRARY - 1, "<library>", JS_EVAL_TYPE_GLOBAL);
}

static int usage(const char *what) {
    fprintf(stderr, "javascript: %s\nusage: javascript [-e CODE | -p CODE | FILE | -] [ARGUMENT...]\n", what);
    return 9;
}

int main(int count, char **words) {
    int at = 1, print = 0, module = -1;
    const char *code = NULL;
    while (at < count && words[at][0] == '-' && words[at][1] != 0) {
        const char *word = words[at++];
        if (!strcmp(word, "--")) break;
        if (!strcmp(word, "-v") || !strcmp(word, "--version")) {
            printf("quickjs-ng %s\n", JS_GetVersion());
            return 0;
        } else if (!strcmp(word, "-e") || !strcmp(word, "--eval") || !strcmp(word, "-p") || !strcmp(word, "--print") || !strcmp(word, "-pe")) {
            if (at >= count) return usage("some code is missing after -e or -p");
            print = word[1] == 'p' || !strcmp(word, "--print");
            code = words[at++];
        } else if (!strcmp(word, "--input-type=module")) {
            module = 1;
        } else {
            return usage("this option is not known here");
        }
    }

    JSRuntime *runtime = JS_NewRuntime();
    if (!runtime) return 2;
    JS_SetMaxStackSize(runtime, STACK);
    js_std_init_handlers(runtime);
    JSContext *context = JS_NewContext(runtime);
    if (!context) return 2;
    js_init_module_std(context, "qjs:std");
    js_init_module_os(context, "qjs:os");
    JS_SetModuleLoaderFunc2(runtime, NULL, js_module_loader, js_module_check_attributes, NULL);
    JS_SetHostPromiseRejectionTracker(runtime, js_std_promise_rejection_tracker, NULL);
    js_std_add_helpers(context, count - at, words + at);

    JSValue global = JS_GetGlobalObject(context);
    JS_SetPropertyStr(context, global, "__library", JS_NewCFunction(context, library, "library", 0));
    JS_FreeValue(context, global);

    int bad = evaluate(context, (const char *)PRELUDE, sizeof PRELUDE - 1, "<prelude>", JS_EVAL_TYPE_MODULE, 0);
    if (!bad && code) {
        bad = evaluate(context, code, strlen(code), "[eval]", module == 1 ? JS_EVAL_TYPE_MODULE : JS_EVAL_TYPE_GLOBAL, print);
    } else if (!bad) {
        const char *name = at < count ? words[at] : "-";
        size_t length = 0;
        int from_input = !strcmp(name, "-");
        char *text = from_input ? input(&length) : (char *)js_load_file(context, &length, name);
        if (!text) {
            fprintf(stderr, "javascript: cannot read `%s`\n", name);
            return 1;
        }
        size_t end = strlen(name);
        if (module < 0) {
            int named = end > 4 && !strcmp(name + end - 4, ".mjs");
            int plain = end > 4 && !strcmp(name + end - 4, ".cjs");
            module = named || (!plain && JS_DetectModule(text, length));
        }
        bad = evaluate(context, text, length, from_input ? "[stdin]" : name, module ? JS_EVAL_TYPE_MODULE : JS_EVAL_TYPE_GLOBAL, 0);
    }
    if (!bad && js_std_loop(context)) bad = failed(context);
    fflush(stdout);
    /* The memory ends with the module: nobody cleans up what is about to be thrown away. */
    exit(bad);
}
