#include "call.h"
#include "stack.h"

#define DOMAIN_MASK 0xffffu
#define CLASS_SHIFT 16

/* Where the kernel starts each i-let, the application's main one (without a function) among them. */
void octo_start(octo_word code, octo_word first, octo_word second)
{
    octo_fls_begin();
    if (code == 0)
        main_ilet((claim_t)first);
    else
        ((dual_ilet_func)code)((void *)first, (void *)second);
    octo_fls_end();
    CALL0(ILET_EXIT);
    __builtin_trap();
}

static void init(simple_ilet *ilet, octo_word code, octo_word first, octo_word second, unsigned class)
{
    *ilet = (simple_ilet){code, first, second, (octo_word)class << CLASS_SHIFT};
}

void simple_ilet_init(simple_ilet *ilet, ilet_func code, void *param)
{
    if (ANSWERS)
        init(ilet, WORD(code), WORD(param), 0, 0);
    else
        CALL3(SIMPLE_ILET_INIT, ilet, code, param);
}

void dual_ilet_init(simple_ilet *ilet, dual_ilet_func code, void *first, void *second)
{
    if (ANSWERS)
        init(ilet, WORD(code), WORD(first), WORD(second), 0);
    else
        CALL4(DUAL_ILET_INIT, ilet, code, first, second);
}

void simple_ilet_init_appclass(simple_ilet *ilet, ilet_func code, void *param, unsigned program_application_class)
{
    init(ilet, WORD(code), WORD(param), 0, program_application_class);
}

void dual_ilet_init_appclass(simple_ilet *ilet, dual_ilet_func code, void *first, void *second, unsigned program_application_class)
{
    init(ilet, WORD(code), WORD(first), WORD(second), program_application_class);
}

void *get_ilocal_data(void)
{
    return (void *)(octo_stack_end() - ILOCAL_SIZE);
}

size_t get_ilocal_data_size(void)
{
    return ILOCAL_SIZE;
}

unsigned get_ilet_sched_dom(const simple_ilet *ilet)
{
    return ilet->domain & DOMAIN_MASK;
}

void set_ilet_sched_dom(simple_ilet *ilet, unsigned domain)
{
    ilet->domain = (ilet->domain & ~WORD(DOMAIN_MASK)) | (domain & DOMAIN_MASK);
}

unsigned get_cur_ilet_sched_dom(void)
{
    return (unsigned)CALL0(GET_CUR_ILET_SCHED_DOM);
}

void set_cur_ilet_sched_dom(unsigned domain)
{
    CALL1(SET_CUR_ILET_SCHED_DOM, domain);
}
