/* Random programs of the classic BPF machine, from a seed: which are taken, and what each leaves of random datagrams. Linux' own check
 * and interpreter are the measure. */
/* not: i386 */
#include "t.h"
#include <linux/filter.h>
#include <sys/socket.h>
#define MOST 40
static uint64_t state;
static uint32_t any(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (state * 0x9e3779b97f4a7c15) >> 32 & 0x7fffffff ? ((state * 0x9e3779b97f4a7c15) >> 33) % below : 0;
}
static uint32_t number(void)
{
	switch (any(8)) {
	case 0: return any(2) ? 0xffffffff : 0x80000000;
	case 1: return (uint32_t)SKF_NET_OFF + any(40);
	case 2: return any(1u << 30) * 4 + any(4);
	case 3: return any(70);
	case 4: return 1u << any(32);
	default: return any(20);
	}
}
/* What Linux adds to the machine and is the same wherever a program runs. */
static const uint32_t extensions[] = {SKF_AD_PROTOCOL, SKF_AD_ALU_XOR_X, SKF_AD_IFINDEX, SKF_AD_HATYPE, 2, 1000};
static struct sock_filter one(int at, int count)
{
	static const uint16_t loads[] = {BPF_W | BPF_ABS, BPF_H | BPF_ABS, BPF_B | BPF_ABS, BPF_W | BPF_IND, BPF_H | BPF_IND, BPF_B | BPF_IND,
		BPF_W | BPF_LEN, BPF_IMM, BPF_MEM};
	static const uint16_t ops[] = {BPF_ADD, BPF_SUB, BPF_MUL, BPF_DIV, BPF_OR, BPF_AND, BPF_LSH, BPF_RSH, BPF_NEG, BPF_MOD, BPF_XOR};
	static const uint16_t jumps[] = {BPF_JA, BPF_JEQ, BPF_JGT, BPF_JGE, BPF_JSET};
	struct sock_filter f = {.k = number()};
	int left = count - at - 2;
	if (left < 0)
		left = 0;
	switch (any(16)) {
	case 0 ... 3:
		f.code = BPF_LD | loads[any(9)];
		if (any(6) == 0) {
			f.code = BPF_LD | BPF_W | BPF_ABS;
			f.k = (uint32_t)SKF_AD_OFF + extensions[any(6)];
		} else if (any(12))
			f.k = any(16);
		break;
	case 4 ... 5:
		f.code = BPF_LDX | (any(3) ? (uint16_t[]){BPF_IMM, BPF_MEM, BPF_LEN}[any(3)] : BPF_B | BPF_MSH);
		if (any(3))
			f.k = any(16);
		break;
	case 6 ... 7:
		f.code = any(2) ? BPF_ST : BPF_STX;
		break;
	case 8 ... 10:
		f.code = BPF_ALU | ops[any(11)] | (any(2) ? BPF_X : BPF_K);
		if ((BPF_OP(f.code) == BPF_LSH || BPF_OP(f.code) == BPF_RSH) && any(8))
			f.k &= 31;
		break;
	case 11 ... 12:
		f.code = BPF_JMP | jumps[any(5)];
		if (BPF_OP(f.code) == BPF_JA)
			f.k = any(16) ? any(left + 1) : number();
		else if (any(2))
			f.code |= BPF_X;
		f.jt = any(left + 1 + !any(40));
		f.jf = any(left + 1 + !any(40));
		break;
	case 13:
		f.code = BPF_MISC | (any(2) ? BPF_TAX : BPF_TXA);
		break;
	case 14:
		f.code = any(6) ? BPF_ALU | BPF_XOR | BPF_X : BPF_RET | BPF_A;
		break;
	default:
		/* Whatever code there is, or is not. */
		f.code = any(40) ? BPF_MISC | BPF_TAX : any(0x10000);
		break;
	}
	if ((BPF_CLASS(f.code) == BPF_ST || BPF_CLASS(f.code) == BPF_STX || (BPF_CLASS(f.code) <= BPF_LDX && BPF_MODE(f.code) == BPF_MEM)) && any(60))
		f.k = any(4);
	return f;
}
static void run(int round, int ends[2])
{
	struct sock_filter f[MOST + 8];
	int count = 0, body = 1 + any(any(3) ? 8 : MOST - 8);
	/* Most begin with words stored, so that loads of them are taken. */
	for (int i = 0; any(4) && i < 4; i++)
		f[count++] = (struct sock_filter)BPF_STMT(BPF_ST, i);
	body += count;
	while (count < body)
		f[count] = one(count, body + 1), count++;
	if (any(4)) {
		/* Six bits of what has been computed are to be seen in the length. */
		f[count++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, any(4) * 8);
		f[count++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 63);
		f[count++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 1);
		f[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_A, 0);
	} else {
		f[count++] = (struct sock_filter)BPF_STMT(BPF_RET | (any(4) ? BPF_A : BPF_K), number());
	}
	struct sock_fprog p = {count, f};
	if (setsockopt(ends[1], SOL_SOCKET, SO_ATTACH_FILTER, &p, sizeof p)) {
		say("%d: %s\n", round, t_errno(errno));
		return;
	}
	char line[256];
	int n = snprintf(line, sizeof line, "%d:", round);
	for (int turn = 0; turn < 4; turn++) {
		unsigned char b[100], got[100];
		int size = any(6) ? 40 + any(60) : 1 + any(20);
		for (int i = 0; i < size; i++)
			b[i] = any(3) ? any(256) : any(4);
		must(send(ends[0], b, size, 0));
		int r = recv(ends[1], got, sizeof got, MSG_DONTWAIT | MSG_TRUNC);
		if (r > 0 && memcmp(b, got, r))
			n += snprintf(line + n, sizeof line - n, " changed");
		n += snprintf(line + n, sizeof line - n, " %d of %d", r, size);
	}
	say("%s\n", line);
}
int main(void)
{
	int ends[2], rounds = getenv("JANUA_LONG") ? 20000 : 400;
	state = t_seed() * 0x9e3779b97f4a7c15 + 0x1234567;
	for (int i = 0; i < 16; i++)
		any(2);
	must(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	for (int i = 0; i < rounds; i++)
		run(i, ends);
	return t_done();
}
