#include "call.h"
#include "octo_fls.h"
#include "stack.h"

/* Keys of a tile, and how often a destructor may set values anew before they are left alone. */
enum { KEYS = 15, ROUNDS = 4 };

static struct {
    fls_destructor destructor;
    /* Odd while the key is taken; a value counts if it was set in the same generation. */
    octo_word generation;
} keys[KEYS];
static simple_spinlock lock;

/* The running i-let's values. */
struct values {
    octo_word set; /* a bit for each key */
    struct {
        void *value;
        octo_word generation;
    } slots[KEYS];
};
_Static_assert(sizeof(struct values) <= LIBRARY_SIZE, "the values have no room");

static struct values *values(void)
{
    return (struct values *)(octo_stack_end() - ILOCAL_SIZE - LIBRARY_SIZE);
}

static int taken(int key)
{
    return key >= 0 && key < KEYS && (keys[key].generation & 1);
}

int fls_alloc(fls_destructor destructor)
{
    int found = -1;
    simple_spinlock_lock(&lock);
    for (int key = 0; key < KEYS && found < 0; key++)
        if (!(keys[key].generation & 1))
            found = key;
    if (found >= 0) {
        keys[found].destructor = destructor;
        keys[found].generation++;
    }
    simple_spinlock_unlock(&lock);
    return found;
}

int fls_free(int key)
{
    simple_spinlock_lock(&lock);
    int known = taken(key);
    if (known)
        keys[key].generation++;
    simple_spinlock_unlock(&lock);
    return known ? 0 : -1;
}

int fls_set(int key, void *value)
{
    if (!taken(key))
        return -1;
    struct values *own = values();
    own->slots[key].value = value;
    own->slots[key].generation = keys[key].generation;
    own->set |= (octo_word)1 << key;
    return 0;
}

void *fls_get(int key)
{
    struct values *own = values();
    if (!taken(key) || !(own->set >> key & 1) || own->slots[key].generation != keys[key].generation)
        return NULL;
    return own->slots[key].value;
}

void octo_fls_begin(void)
{
    values()->set = 0;
}

void octo_fls_end(void)
{
    struct values *own = values();
    for (int round = 0; own->set && round < ROUNDS; round++)
        for (int key = 0; key < KEYS; key++) {
            void *value = fls_get(key);
            fls_destructor destructor = keys[key].destructor;
            own->set &= ~((octo_word)1 << key);
            if (value && destructor)
                destructor(value);
        }
}
