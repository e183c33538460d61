/* parser.y: the grammar of .tex, as in the language's description, and the tree it builds. */
%code requires {
#include "frontend/lex.h"
}

%code {
#include <string.h>

static int parse_yylex(ParseValue *v, Span *at, Parse *p);
static void parse_yyerror(Span *at, Parse *p, const char *message);
static bool stack_grow(Parse *p, void **at[3], const ptrdiff_t used[3], const size_t size[3],
                       ptrdiff_t *cap);

/* The parser's stack starts on C's stack, small, and goes on in the arena. The look-ahead
 * correction's own stack is as deep as the longest chain of empty rules, less than its first 20. */
#define YYINITDEPTH 64
#define YYMALLOC(n) ((void)(n), (void *)0)
#define YYFREE(p) ((void)(p))
#define yyoverflow(message, ss, sn, vs, vn, ls, ln, cap)                           \
	do {                                                                           \
		void *grown[3] = {*(ss), *(vs), *(ls)};                                    \
		if (stack_grow(p, (void **[]){&grown[0], &grown[1], &grown[2]},            \
		               (const ptrdiff_t[]){(sn), (vn), (ln)},                      \
		               (const size_t[]){sizeof **(ss), sizeof **(vs), sizeof **(ls)}, (cap))) { \
			*(ss) = grown[0];                                                      \
			*(vs) = grown[1];                                                      \
			*(ls) = grown[2];                                                      \
		}                                                                          \
	} while (0)

#define YYLLOC_DEFAULT(now, rhs, n) ((now) = rule_span((rhs), (n)))

static Span rule_span(const Span *rhs, int n);
static AstId binary(Parse *p, AstOp op, Span at, AstId a, AstId b);
static AstId unary(Parse *p, AstOp op, Span at, AstId a);
static AstId define(Parse *p, AstOp op, Span at, AstId target, AstId value, Dom dom);
static AstId read_of(Parse *p, Span at, Name name, Span name_at, List *subs, AstId where);
static AstId names_of(Parse *p, Span at, const List *l);
static AstId graph_named(Parse *p, AstId graph, AstId attrs);
static AstId count_of(Parse *p, AstKind kind, Span at, Name name, Span name_at, Number n, Span n_at);
}

%define lr.type lalr
%define api.pure full
%define api.prefix {parse_yy}
%define api.token.prefix {T_}
%define api.value.type {ParseValue}
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%locations
%expect 0
%param {Parse *p}
%initial-action { @$ = (Span){p->lex.file, 1, 1, 1, 1, 0, 0}; }

%token END 0 "end of file"
%token GRAPH "graph" FN "fn" CONST "const" USE "use" MESH "mesh" WHERE "where" ELSE "else" IN "in"
%token INOUT "inout" RETURN "return" NL "end of line"
%token <name> ID "name" STR "string"
%token <number> NUM "number"
%token ARROW "->" DOTDOT ".." QOPEN "?[" QQ "??" POW "**" OROR "||" ANDAND "&&" EQ "==" NE "!="
%token LE "<=" GE ">=" ADDEQ "+=" MAXEQ "max=" MINEQ "min=" DIV "div" MOD "mod"

%type <node> item attrs fnidx facts fact param type dim block fnblock stmt lhs sub args expr primary
%type <list> items attrlist idlist ids factlist params paramlist dims stmts subs arglist
%type <dom> dom

%right '?' ':'
%left QQ
%left OROR
%left ANDAND
%nonassoc EQ NE '<' '>' LE GE
%left '+' '-'
%left '*' '/' DIV MOD
%precedence UNARY
%right POW

%%

/* The lexer gives one NL after a statement, however many lines and `;` follow, and none before the
 * first. So the states where a statement starts reduce without looking at the next token, and an
 * error in the first statement of a block finds `stmts` on the stack. */
file: items { p->root = ast_make_list(p, AST_FILE, @$, $items); }
	;

nl: %empty
	| NL
	;

items: %empty         { $$ = list_new(p); }
	| items item NL     { $$ = list_add(p, $1, $2); }
	| items error NL recovered { $$ = list_gap($1); }
	;

item: attrs GRAPH ID '(' params ')' ARROW '(' params ')' facts block {
		AstId in = ast_make_list(p, AST_PARAMS, span_join(@4, @6), $5);
		AstId out = ast_make_list(p, AST_PARAMS, span_join(@8, @10), $9);
		$$ = ast_named(p, AST_NEW(p, AST_GRAPH, @$, $attrs, in, out, $facts, $block), $ID, @ID);
	}
	| attrs GRAPH ID[name] '=' ID[word] '(' args ')' {
		AstId made = ast_named(p, AST_NEW(p, AST_DERIVED, @$, $attrs, $args), $name, @name);
		$$ = ast_worded(p, made, $word, @word);
	}
	| FN ID fnidx '(' ids ')' '=' expr {
		AstId params = names_of(p, span_join(@4, @6), $ids);
		$$ = ast_named(p, AST_NEW(p, AST_FN, @$, $fnidx, params, $expr), $ID, @ID);
	}
	| FN ID fnidx '(' ids ')' fnblock {
		AstId params = names_of(p, span_join(@4, @6), $ids);
		p->fn_gap |= ast_at(p, $fnblock)->flag;
		$$ = ast_named(p, AST_NEW(p, AST_FN, @$, $fnidx, params, $fnblock), $ID, @ID);
	}
	| CONST ID '=' expr { $$ = ast_named(p, AST_NEW(p, AST_CONST, @$, $expr), $ID, @ID); }
	| USE STR           { $$ = ast_worded(p, ast_make(p, AST_USE, @$, NULL, 0), $STR, @STR); }
	| MESH ID '[' NUM ']' { $$ = count_of(p, AST_MESH, @$, $ID, @ID, $NUM, @NUM); }
	;

attrs: attrlist { $$ = ast_make_list(p, AST_ATTRS, @$, $1); }
	;

attrlist: %empty { $$ = list_new(p); }
	| attrlist '@' ID nl {
		AstId a = ast_named(p, ast_make(p, AST_ATTR, span_join(@2, @ID), NULL, 0), $ID, @ID);
		$$ = list_add(p, $1, a);
	}
	| attrlist '@' ID '(' args ')' nl {
		const AstNode *args = ast_at(p, $args);
		AstId a = ast_make(p, AST_ATTR, span_join(@2, @6), p->ast->kid.at + args->kid, args->nkid);
		$$ = list_add(p, $1, ast_named(p, a, $ID, @ID));
	}
	;

fnidx: %empty         { $$ = ast_make(p, AST_NAMES, @$, NULL, 0); }
	| '[' idlist ']'    { $$ = names_of(p, @$, $2); }
	;

idlist: ID {
		$$ = list_add(p, list_new(p), ast_named(p, ast_make(p, AST_NAME, @ID, NULL, 0), $ID, @ID));
	}
	| idlist ',' ID {
		$$ = list_add(p, $1, ast_named(p, ast_make(p, AST_NAME, @ID, NULL, 0), $ID, @ID));
	}
	;

ids: %empty { $$ = list_new(p); }
	| idlist
	;

facts: %empty        { $$ = ast_make(p, AST_FACTS, @$, NULL, 0); }
	| WHERE factlist   { $$ = ast_make_list(p, AST_FACTS, @$, $2); }
	;

factlist: fact         { $$ = list_add(p, list_new(p), $1); }
	| factlist ',' fact  { $$ = list_add(p, $1, $3); }
	;

fact: expr
	| ID '~' NUM { $$ = count_of(p, AST_HINT, @$, $ID, @ID, $NUM, @NUM); }
	;

params: %empty { $$ = list_new(p); }
	| paramlist
	;

paramlist: param         { $$ = list_add(p, list_new(p), $1); }
	| paramlist ',' param  { $$ = list_add(p, $1, $3); }
	;

param: ID ':' type {
		ast_at(p, $type)->at = @$;
		$$ = ast_named(p, $type, $ID, @ID);
	}
	| INOUT ID ':' type {
		AstNode *n = ast_at(p, $type);
		n->at = @$;
		n->flag = true;
		$$ = ast_named(p, $type, $ID, @ID);
	}
	;

type: ID { $$ = ast_worded(p, ast_make(p, AST_PARAM, @$, NULL, 0), $ID, @ID); }
	| ID '[' dims ']' {
		$$ = ast_worded(p, ast_make_list(p, AST_PARAM, @$, $dims), $ID, @ID);
		ast_at(p, $$)->op = 1;
	}
	;

dims: dim         { $$ = list_add(p, list_new(p), $1); }
	| dims ',' dim  { $$ = list_add(p, $1, $3); }
	;

dim: expr
	| '@' ID { $$ = ast_named(p, ast_make(p, AST_DEVICE, @$, NULL, 0), $ID, @ID); }
	;

block: '{' stmts '}' { $$ = ast_make_list(p, AST_BLOCK, @$, $stmts); }
	;

fnblock: '{' stmts RETURN expr NL '}' {
		AstId r = AST_NEW(p, AST_RETURN, span_join(@RETURN, @expr), $expr);
		$$ = ast_make_list(p, AST_BLOCK, @$, list_add(p, $stmts, r));
	}
	;

stmts: %empty          { $$ = list_new(p); }
	| stmts stmt NL      { $$ = list_add(p, $1, $2); }
	| stmts error NL recovered { $$ = list_gap($1); }
	;

/* Before the next token is looked at, so that an error there is reported again. */
recovered: %empty { yyerrok; }
	;

stmt: lhs '=' expr dom        { $$ = define(p, AB_SET, @$, $lhs, $expr, $dom); }
	| ID[name] ':' ID[type] '[' subs ']' '=' expr dom {
		AstId target = read_of(p, span_join(@name, @6), $name, @name, $subs, AST_NONE);
		$$ = ast_worded(p, define(p, AB_SET, @$, target, $expr, $dom), $type, @type);
	}
	| ID[name] ':' ID[type] '=' expr dom {
		AstId target = ast_named(p, ast_make(p, AST_NAME, @name, NULL, 0), $name, @name);
		$$ = ast_worded(p, define(p, AB_SET, @$, target, $expr, $dom), $type, @type);
	}
	| lhs ADDEQ expr dom        { $$ = define(p, AB_ADDSET, @$, $lhs, $expr, $dom); }
	| lhs MAXEQ expr dom        { $$ = define(p, AB_MAXSET, @$, $lhs, $expr, $dom); }
	| lhs MINEQ expr dom        { $$ = define(p, AB_MINSET, @$, $lhs, $expr, $dom); }
	| '(' idlist ')' '=' ID '(' args ')' {
		AstId names = names_of(p, span_join(@1, @3), $idlist);
		$$ = ast_named(p, AST_NEW(p, AST_CALLDEF, @$, names, $args), $ID, @ID);
	}
	;

dom: %empty                { $$ = (Dom){AST_NONE, AST_NONE}; }
	| WHERE expr             { $$ = (Dom){$2, AST_NONE}; }
	| WHERE expr ELSE expr   { $$ = (Dom){$2, $4}; }
	| ELSE expr              { $$ = (Dom){AST_NONE, $2}; }
	;

lhs: ID               { $$ = ast_named(p, ast_make(p, AST_NAME, @$, NULL, 0), $ID, @ID); }
	| ID '[' subs ']'   { $$ = read_of(p, @$, $ID, @ID, $subs, AST_NONE); }
	;

subs: sub         { $$ = list_add(p, list_new(p), $1); }
	| subs ',' sub  { $$ = list_add(p, $1, $3); }
	;

sub: expr
	| expr[e] IN expr[lo] DOTDOT expr[hi] { $$ = AST_NEW(p, AST_RANGE, @$, $e, $lo, $hi); }
	;

args: %empty    { $$ = ast_make(p, AST_ARGS, @$, NULL, 0); }
	| arglist     { $$ = ast_make_list(p, AST_ARGS, @$, $1); }
	;

arglist: expr         { $$ = list_add(p, list_new(p), $1); }
	| arglist ',' expr  { $$ = list_add(p, $1, $3); }
	;

expr: expr '+' expr     { $$ = binary(p, AB_ADD, @$, $1, $3); }
	| expr '-' expr     { $$ = binary(p, AB_SUB, @$, $1, $3); }
	| expr '*' expr     { $$ = binary(p, AB_MUL, @$, $1, $3); }
	| expr '/' expr     { $$ = binary(p, AB_FDIV, @$, $1, $3); }
	| expr DIV expr     { $$ = binary(p, AB_IDIV, @$, $1, $3); }
	| expr MOD expr     { $$ = binary(p, AB_IMOD, @$, $1, $3); }
	| expr POW expr     { $$ = binary(p, AB_POW, @$, $1, $3); }
	| expr EQ expr      { $$ = binary(p, AB_EQ, @$, $1, $3); }
	| expr NE expr      { $$ = binary(p, AB_NE, @$, $1, $3); }
	| expr '<' expr     { $$ = binary(p, AB_LT, @$, $1, $3); }
	| expr '>' expr     { $$ = binary(p, AB_GT, @$, $1, $3); }
	| expr LE expr      { $$ = binary(p, AB_LE, @$, $1, $3); }
	| expr GE expr      { $$ = binary(p, AB_GE, @$, $1, $3); }
	| expr ANDAND expr  { $$ = binary(p, AB_AND, @$, $1, $3); }
	| expr OROR expr    { $$ = binary(p, AB_OR, @$, $1, $3); }
	| expr QQ expr      { $$ = binary(p, AB_COALESCE, @$, $1, $3); }
	| '-' expr %prec UNARY  { $$ = unary(p, AB_NEG, @$, $2); }
	| '!' expr %prec UNARY  { $$ = unary(p, AB_NOT, @$, $2); }
	| expr '?' expr ':' expr  { $$ = AST_NEW(p, AST_COND, @$, $1, $3, $5); }
	| primary
	;

primary: NUM {
		$$ = ast_make(p, AST_NUM, @$, NULL, 0);
		AstNode *n = ast_at(p, $$);
		n->is_int = $NUM.is_int;
		if ($NUM.is_int)
			n->num.i = $NUM.value.i;
		else
			n->num.f = $NUM.value.f;
		n->wide = $NUM.wide;
	}
	| '(' expr ')'     { $$ = $2; }
	| ID               { $$ = ast_named(p, ast_make(p, AST_NAME, @$, NULL, 0), $ID, @ID); }
	| ID '(' args ')'  { $$ = ast_named(p, AST_NEW(p, AST_CALL, @$, $args), $ID, @ID); }
	| ID '[' subs ']'  { $$ = read_of(p, @$, $ID, @ID, $subs, AST_NONE); }
	| ID '[' subs WHERE expr ']' { $$ = read_of(p, @$, $ID, @ID, $subs, $expr); }
	| ID QOPEN subs ']' {
		$$ = read_of(p, @$, $ID, @ID, $subs, AST_NONE);
		ast_at(p, $$)->flag = true;
	}
	| ID '[' subs ']' '(' args ')' {
		AstId subs = ast_make_list(p, AST_SUBS, @subs, $subs);
		$$ = ast_named(p, AST_NEW(p, AST_APPLY, @$, subs, AST_NONE, $args), $ID, @ID);
	}
	| ID '[' subs WHERE expr ']' '(' args ')' {
		AstId subs = ast_make_list(p, AST_SUBS, @subs, $subs);
		$$ = ast_named(p, AST_NEW(p, AST_APPLY, @$, subs, $expr, $args), $ID, @ID);
	}
	;

%%

enum { STACK_LIMIT = 16384 /* entries; what MAX_DEPTH and MAX_NESTING allow needs less */ };

static bool
stack_grow(Parse *p, void **at[3], const ptrdiff_t used[3], const size_t size[3], ptrdiff_t *cap)
{
	if (*cap >= STACK_LIMIT) {
		lex_stop(&p->lex, DIAG_E0904, p->lex.prev.at, "the expression is nested too deeply",
		         "give its inner parts names of their own");
		return false;
	}
	*cap *= 4;
	for (int k = 0; k < 3; k++) {
		void *grown = arena_array(p->arena, size[k], (size_t)*cap);
		memcpy(grown, *at[k], (size_t)used[k]);
		*at[k] = grown;
	}
	return true;
}

static int
parse_yylex(ParseValue *v, Span *at, Parse *p)
{
	Token t = lex_token(&p->lex);
	*v = t.value;
	*at = t.at;
	if (t.kind == T_PARSE_YYerror)
		lex_recover(&p->lex);
	return t.kind;
}

/* Called only where the stack ended; stack_grow has said so. */
static void
parse_yyerror(Span *at, Parse *p, const char *message)
{
	(void)message;
	lex_stop(&p->lex, DIAG_E0904, *at, "the expression is nested too deeply",
	         "give its inner parts names of their own");
}

static int
yyreport_syntax_error(const yypcontext_t *context, Parse *p)
{
	yysymbol_kind_t expected[YYNTOKENS];
	const char *text[YYNTOKENS];
	int n = yypcontext_expected_tokens(context, expected, YYNTOKENS);
	for (int k = 0; k < n; k++)
		text[k] = yysymbol_name(expected[k]);
	if (!p->lex.stopped)
		syntax_error(p, text, n < 0 ? 0 : n);
	lex_recover(&p->lex);
	return 0;
}

const char *
token_text(int kind)
{
	return yysymbol_name(YYTRANSLATE(kind));
}

int
parse_run(Parse *p)
{
	return parse_yyparse(p);
}

/* From the first to the last part that has any text; rhs[0] is what stands before the rule. */
static Span
rule_span(const Span *rhs, int n)
{
	int first = 1, last = n;
	while (first < n && rhs[first].begin == rhs[first].end)
		first++;
	while (last > first && rhs[last].begin == rhs[last].end)
		last--;
	if (n > 0)
		return span_join(rhs[first], rhs[last]);
	Span s = rhs[0];
	s.begin = s.end, s.line = s.end_line, s.col = s.end_col;
	return s;
}

/* --- what the actions build --- */

static AstId
binary(Parse *p, AstOp op, Span at, AstId a, AstId b)
{
	AstId id = AST_NEW(p, AST_BINARY, at, a, b);
	ast_at(p, id)->op = op;
	return id;
}

static AstId
unary(Parse *p, AstOp op, Span at, AstId a)
{
	AstId id = AST_NEW(p, AST_UNARY, at, a);
	ast_at(p, id)->op = op;
	return id;
}

static AstId
names_of(Parse *p, Span at, const List *l)
{
	return ast_make_list(p, AST_NAMES, at, l);
}

static AstId
read_of(Parse *p, Span at, Name name, Span name_at, List *subs, AstId where)
{
	const AstNode *first = ast_at(p, subs->first->id), *last = ast_at(p, subs->last->id);
	AstId list = ast_make_list(p, AST_SUBS, span_join(first->at, last->at), subs);
	return ast_named(p, AST_NEW(p, AST_READ, at, list, where), name, name_at);
}

/* target is the NAME or READ that the left side was parsed as. */
static AstId
define(Parse *p, AstOp op, Span at, AstId target, AstId value, Dom dom)
{
	AstNode t = *ast_at(p, target);
	bool brackets = t.kind == AST_READ;
	AstId subs = brackets ? ast_kid(p->ast, target, 0) : ast_make(p, AST_SUBS, t.at, NULL, 0);
	AstId id = AST_NEW(p, AST_DEFINE, at, subs, value, dom.where, dom.other);
	AstNode *n = ast_at(p, id);
	n->op = op;
	n->flag = brackets;
	return ast_named(p, id, t.name, t.name_at);
}

static AstId
count_of(Parse *p, AstKind kind, Span at, Name name, Span name_at, Number n, Span n_at)
{
	if (!n.is_int || n.value.i < 1)
		diag_add(p->ast->diags, DIAG_E0112, n_at, "a whole number of at least 1 is wanted here");
	AstId id = ast_named(p, ast_make(p, kind, at, NULL, 0), name, name_at);
	ast_at(p, id)->num.i = n.is_int ? n.value.i : 1;
	return id;
}
