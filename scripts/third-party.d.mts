/** What THIRD-PARTY.md should say, by what the handlers are made of now. Builds them. */
export declare function thirdParty(): Promise<string>
